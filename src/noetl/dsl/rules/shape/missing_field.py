"""NOE104 reports a map without a key that it must have, or with an empty text for it."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.grammar.titles import title
from noetl.dsl.nodes import Scalar
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: greet, path: examples/greet }
workflow:
  - step: greet
    tool: { kind: noop }
"""
_IDENTITY = ("apiVersion", "kind")


def check(subject: Subject) -> Iterator[Found]:
    for finding in subject.shape:
        if finding.kind != "missing" or finding.tool is not None:
            continue
        if finding.level.name == "playbook" and finding.name in _IDENTITY:
            continue
        known = finding.field
        about = known.summary if known else ""
        example = f" For example: `{finding.name}: {known.example}`." if known and known.example else ""
        if isinstance(finding.node, Scalar):
            message = f"'{finding.name}' of {title(finding.level)} is empty."
        else:
            message = f"{title(finding.level).capitalize()} needs '{finding.name}', which is not here."
        yield at(finding.node, message, f"Add `{finding.name}`. {about}{example}")


RULE = Rule(
    code="NOE104",
    name="missing-field",
    group="shape",
    severity="error",
    summary="A key that must be there is missing or empty.",
    why="Without it the playbook cannot be registered, found, or run as written.",
    fix="Add the key. `noetl explain FIELD` tells what it is for.",
    bad=GOOD.replace(", path: examples/greet", ""),
    good=GOOD,
    check=check,
)
