"""NOE321 reports a misspelled `ctx` key, which nothing writes."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.scopes import CTX_FIELDS
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.checking.typos import slip_of
from noetl.dsl.rules.templates.reporting import at_element

GOOD = example("""\
workflow:
  - step: count
    tool: { kind: noop, result: 3 }
    set: { ctx.total: "{{ count }}" }
    next: show
  - step: show
    tool: { kind: noop, message: "{{ ctx.total }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    written = subject.names.ctx
    for reference in subject.references:
        key = reference.key
        if reference.name not in ("ctx", "vars") or reference.means != ("scope",) or key is None:
            continue
        if reference.read.guarded or key in written or key in CTX_FIELDS or key in subject.obscured:
            continue
        meant = slip_of(key, written)
        if meant:
            message = f"Nothing writes `ctx.{key}`. Did you mean '{meant}'?"
            fix = f"Correct the name, or write it with `set: {{ ctx.{key}: … }}`."
            yield at_element(subject, reference, 1, message, fix)
        elif key in subject.names.workload:
            message = f"Nothing writes `ctx.{key}`, but the workload has '{key}'."
            yield at_element(subject, reference, 1, message, f"Read it as `workload.{key}`.")


RULE = Rule(
    code="NOE321",
    name="unwritten-ctx-key",
    severity="warning",
    summary="A template reads a key of `ctx` that nothing writes, and a similar key exists.",
    why=(
        "`set` writes to `ctx`, and so do signals and patches from outside. A key that no step writes may come from outside, "
        "but a key that differs by one letter from a written one is most likely a typing mistake."
    ),
    fix="Correct the name. Read an optional key with `default`.",
    bad=GOOD.replace("{{ ctx.total }}", "{{ ctx.totla }}"),
    good=GOOD,
    check=check,
)
