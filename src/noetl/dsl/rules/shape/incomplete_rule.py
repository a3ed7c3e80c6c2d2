"""NOE117 reports a rule without a condition or without a consequence."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import Entry, MapNode, Scalar
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.shape.parts import rule_lists
from noetl.dsl.shape import stand_ins
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: ping, path: examples/ping }
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
"""


def check(subject: Subject) -> Iterator[Found]:
    instead = stand_ins(subject.shape)
    for items, is_gate in rule_lists(subject):
        answer = "then: { allow: true }" if is_gate else "then: { do: continue }"
        for rule in items:
            condition = rule.entry("when") or rule.entry("else")
            if condition is None:
                if instead.isdisjoint(((id(rule), "when"), (id(rule), "else"))):
                    message = "This rule has no condition: it is neither a `when` nor the `else`."
                    yield at(rule, message, f'Write `when: "{{{{ … }}}}"` before `then`, or `else: {{ {answer} }}`.')
            elif not _has_consequence(rule, condition) and (id(rule), "then") not in instead:
                message = f"This `{condition.key.text}` has no `then`, so nothing follows from it."
                yield at(condition.key, message, f"Add `{answer}`, or what else is to follow.")


def _has_consequence(rule: MapNode, condition: Entry) -> bool:
    if condition.key.text == "else" and isinstance(condition.value, MapNode):
        return True
    then = rule.get("then")
    return then is not None and not (isinstance(then, Scalar) and then.value is None)


RULE = Rule(
    code="NOE117",
    name="incomplete-rule",
    group="shape",
    severity="error",
    summary="A rule has no `when` and is not the `else`, or has no `then`.",
    why="Rules are tried from the top, and the first match decides. One without a condition would match always, "
    "one without a consequence would stop the search and do nothing.",
    fix='Give the rule both parts: `when: "{{ … }}"` and `then: { … }`; the last one may be `else: { then: { … } }`.',
    bad=GOOD.replace(
        "            - when: \"{{ outcome.status == 'error' }}\"\n              then: { do: fail }\n",
        "            - then: { do: fail }\n",
    ),
    good=GOOD,
    check=check,
)
