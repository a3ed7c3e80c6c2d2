"""NOE127 reports two writes to one target in the same `set`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import Scalar
from noetl.dsl.rules.shape.traversal import writes

GOOD = example("""\
workflow:
  - step: count
    tool: { kind: noop, result: { total: 3 } }
    set:
      ctx.total: "{{ output.data.total }}"
      ctx.state: counted
    next: report
  - step: report
    tool: { kind: noop, message: "{{ ctx.total }} {{ ctx.state }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for _, _, assigns in writes(subject):
        first: dict[str, Scalar | None] = {}
        for assign in sorted(assigns, key=lambda assign: assign.at.start if assign.at else 0):
            if assign.target not in first:
                first[assign.target] = assign.at
            elif assign.at is not None:
                other = first[assign.target]
                shown = f" ('{other.text}' above is the same target)" if other and other.text != assign.at.text else ""
                message = f"'{assign.target}' is written twice{shown}."
                yield at(assign.at, message, "Keep one of the two; a name without a scope means `ctx`.")


RULE = Rule(
    code="NOE127",
    name="repeated-write",
    severity="error",
    summary="One `set` writes the same target twice.",
    why="`total`, `ctx.total`, `vars.total` and `set_ctx: { total: … }` are the same target; "
    "only one of the writes would take effect.",
    fix="Keep one of them.",
    bad=GOOD.replace("      ctx.state: counted\n", "      ctx.state: counted\n      state: done\n"),
    good=GOOD,
    check=check,
)
