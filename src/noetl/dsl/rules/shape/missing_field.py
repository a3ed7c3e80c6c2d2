"""NOE104 reports a map in which a required key is missing or empty."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.shape import ShapeFinding
from noetl.dsl.grammar.titles import title
from noetl.dsl.grammar.wording import listed
from noetl.dsl.reading.nodes import Scalar

GOOD = example("""\
workflow:
  - step: greet
    tool: { kind: noop }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    by_map: dict[int, list[ShapeFinding]] = {}
    for finding in subject.shape:
        if finding.kind == "missing" and finding.tool is None and not _is_identity(finding):
            by_map.setdefault(id(finding.node), []).append(finding)
    for missing in by_map.values():
        yield _report(missing)


def _is_identity(finding: ShapeFinding) -> bool:
    """Return whether NOE108 reports the finding instead."""
    return finding.level.name in ("playbook", "subscription") and finding.name in ("apiVersion", "kind")


def _report(missing: list[ShapeFinding]) -> Finding:
    first = missing[0]
    about = " ".join(_advice(finding) for finding in missing)
    if isinstance(first.node, Scalar):
        return at(first.node, f"'{first.name}' of {title(first.level)} is empty.", about)
    words = title(first.level)
    names = listed([finding.name for finding in missing])
    message = f"{words[:1].upper()}{words[1:]} needs {names}, which {'are' if len(missing) > 1 else 'is'} missing."
    return at(first.node, message, about)


def _advice(finding: ShapeFinding) -> str:
    known = finding.field
    about = f" {known.summary}" if known else ""
    example = f" For example: `{finding.name}: {known.example}`." if known and known.example else ""
    return f"Add `{finding.name}`.{about}{example}"


RULE = Rule(
    code="NOE104",
    name="missing-field",
    severity="error",
    summary="A required key is missing or empty.",
    why="Without it, the playbook cannot be registered, found or run.",
    fix="Add the key. `noetl explain FIELD` describes it.",
    bad=GOOD.replace(", path: examples/hello", ""),
    good=GOOD,
    check=check,
)
