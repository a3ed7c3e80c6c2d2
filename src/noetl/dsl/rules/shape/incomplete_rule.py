"""NOE117 reports a rule without a condition or without a consequence."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import Scalar
from noetl.dsl.rule import Found, Rule, at
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
    for finding in subject.shape:
        if finding.kind != "incomplete":
            continue
        answer = "then: { allow: true }" if finding.level.name == "admit_rule" else "then: { do: continue }"
        if finding.name == "then" and isinstance(finding.node, Scalar):
            message = f"This `{finding.node.text}` has no `then`, so nothing follows from it."
            yield at(finding.node, message, f"Add `{answer}`, or what else is to follow.")
        else:
            message = "This rule has no condition: it is neither a `when` nor the `else`."
            yield at(finding.node, message, f'Write `when: "{{{{ … }}}}"` before `then`, or `else: {{ {answer} }}`.')


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
