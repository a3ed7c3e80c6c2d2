"""NOE108 reports a missing or wrong `apiVersion` or `kind`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.grammar.document import API_VERSIONS
from noetl.dsl.grammar.wording import shown
from noetl.dsl.reading.nodes import Scalar

GOOD = example("""\
workflow:
  - step: greet
    tool: { kind: noop }
""")
_KNOWN = {"apiVersion": API_VERSIONS, "kind": ("Playbook",)}


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        known = _KNOWN.get(finding.name) if finding.level.name in ("playbook", "subscription") else None
        if known is None or finding.kind not in ("missing", "bad-value"):
            continue
        line = f"{finding.name}: {known[-1]}"
        if isinstance(finding.node, Scalar) and finding.kind == "bad-value":
            version = finding.node.text.rpartition("/")[2].lower()
            meant = next((name for name in known if name.endswith(f"/{version}")), known[-1])
            message = f"'{shown(finding.node)}' is not a known {finding.name}; it must be {' or '.join(known)}."
            yield at(finding.node, message, f"Write `{finding.name}: {meant}`.")
        else:
            message = f"The line `{line}`, which identifies a playbook, is missing."
            yield at(finding.node, message, f"Add `{line}` at the top of the file.")


RULE = Rule(
    code="NOE108",
    name="not-a-playbook",
    severity="error",
    summary="`apiVersion` or `kind` is missing or not that of a playbook.",
    why="The two lines identify the language of the file and its version. Without them it could be the configuration of "
    "another program, and a later version of NoETL could not tell how to read it.",
    fix="Begin the file with `apiVersion: noetl.io/v10` and `kind: Playbook`. "
    "`noetl.io/v1` and `noetl.io/v2` are supported too.",
    bad=GOOD.replace("noetl.io/v10", "noetl/v10"),
    good=GOOD,
    check=check,
)
