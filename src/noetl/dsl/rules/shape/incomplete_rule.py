"""NOE117 reports a rule without a condition or without a consequence."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import Scalar

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


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind != "incomplete":
            continue
        answer = "then: { allow: true }" if finding.level.name == "admit_rule" else "then: { do: continue }"
        if finding.name == "then" and isinstance(finding.node, Scalar):
            message = f"This `{finding.node.text}` has no `then`, so it has no effect."
            yield at(finding.node, message, f"Add a consequence, such as `{answer}`.")
        else:
            message = "This rule has no condition: add a `when`, or make it the `else`."
            yield at(finding.node, message, f'Write `when: "{{{{ … }}}}"` before `then`, or `else: {{ {answer} }}`.')


RULE = Rule(
    code="NOE117",
    name="incomplete-rule",
    severity="error",
    summary="A rule has no `when` and is not the `else`, or has no `then`.",
    why="Rules are evaluated from the top, and the first match decides. A rule without a condition would always match; "
    "a rule without a consequence would end the evaluation and do nothing.",
    fix='Write both parts: `when: "{{ … }}"` and `then: { … }`. The last rule may be `else: { then: { … } }`.',
    bad=GOOD.replace(
        "            - when: \"{{ outcome.status == 'error' }}\"\n              then: { do: fail }\n",
        "            - then: { do: fail }\n",
    ),
    good=GOOD,
    check=check,
)
