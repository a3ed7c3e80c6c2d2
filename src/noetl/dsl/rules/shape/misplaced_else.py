"""NOE118 reports an `else` that is not last, is repeated, or has a `when`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode
from noetl.dsl.rules.shape.traversal import rule_lists

GOOD = example("""\
workflow:
  - step: ping
    tool:
      kind: http
      url: https://example.org/ping
      spec:
        policy:
          rules:
            - when: "{{ outcome.status == 'error' }}"
              then: { do: fail }
            - else: { then: { do: continue } }
""")
BAD = GOOD.replace(
    """\
            - when: "{{ outcome.status == 'error' }}"
              then: { do: fail }
            - else: { then: { do: continue } }
""",
    """\
            - else: { then: { do: continue } }
            - when: "{{ outcome.status == 'error' }}"
              then: { do: fail }
""",
)


def check(subject: CheckContext) -> Iterator[Finding]:
    for items, _ in rule_lists(subject):
        yield from _check_rules(items)


def _check_rules(rules: tuple[MapNode, ...]) -> Iterator[Finding]:
    seen = False
    for index, rule in enumerate(rules):
        entry = rule.entry("else")
        if entry is None:
            continue
        if seen:
            yield at(entry.key, "This is the second `else` of these rules; it is never reached.", "Keep one `else`.")
        elif "when" in rule:
            message = "This rule has both a `when` and an `else`."
            yield at(entry.key, message, "Make the `else` a separate rule, the last item of the list.")
        elif any("else" not in later for later in rules[index + 1 :]):
            message = "The `else` is not the last rule; the rules below it are never evaluated."
            yield at(entry.key, message, "Move the `else` to the end of the list.")
        seen = True


RULE = Rule(
    code="NOE118",
    name="misplaced-else",
    severity="error",
    summary="An `else` is not the last rule of its list, occurs twice, or has a `when`.",
    why="`else` matches everything, so no rule below it can match.",
    fix="Keep one `else`, as the last item of the list, without a `when`.",
    bad=BAD,
    good=GOOD,
    check=check,
)
