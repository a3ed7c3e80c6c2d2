"""NOE105 reports a word that is not allowed, and a number out of range."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.shape import ShapeFinding
from noetl.dsl.grammar.types import Choice, ListOf, Type
from noetl.dsl.grammar.wording import shown, takes
from noetl.dsl.reading.nodes import Scalar

GOOD = example("""\
workload: { cities: [Oslo, Bergen] }
workflow:
  - step: sweep
    loop:
      in: "{{ workload.cities }}"
      iterator: city
      spec: { mode: parallel }
    tool: { kind: noop, message: "{{ city }}" }
""")
_LIKE = 0.7
_IDENTITY = ("apiVersion", "kind")


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind != "bad-value" or not isinstance(finding.node, Scalar):
            continue
        if finding.level.name in ("playbook", "subscription") and finding.name in _IDENTITY:
            continue
        wanted = takes(_wanted(finding))
        meant = _nearest(subject, finding)
        hint = f" Did you mean '{meant}'?" if meant else ""
        is_item = finding.field is not None and isinstance(finding.field.type, ListOf)
        owner = f"An item of '{finding.name}'" if is_item else f"'{finding.name}'"
        message = f"{owner} takes {wanted}, not '{shown(finding.node)}'.{hint}"
        right = f"`{meant}`" if is_item else f"`{finding.name}: {meant}`"
        yield at(finding.node, message, f"Write {right}." if meant else f"Write {wanted}.")


def _wanted(finding: ShapeFinding) -> Type:
    """Return the type of the field, or of the part that the value is."""
    known, expected = finding.field, finding.expected or Type()
    if known and isinstance(known.type, ListOf) and known.type.item == expected:
        return expected
    return known.type if known and finding.name in (known.name, *known.aliases) else expected


def _nearest(subject: CheckContext, finding: ShapeFinding) -> str | None:
    if not isinstance(finding.expected, Choice) or not isinstance(finding.node, Scalar):
        return None
    word = subject.suggestions.nearest(finding.node.text, finding.expected.words)
    # Words are few and short, so a weak similarity means nothing.
    return word if word and SequenceMatcher(None, finding.node.text.lower(), word.lower()).ratio() > _LIKE else None


RULE = Rule(
    code="NOE105",
    name="bad-value",
    severity="error",
    summary="A value is not one of the words that its key accepts, or is out of range.",
    why="The value has no meaning, and guessing one would hide the mistake.",
    fix="Write one of the values that the message lists.",
    bad=GOOD.replace("mode: parallel", "mode: paralel"),
    good=GOOD,
    check=check,
)
