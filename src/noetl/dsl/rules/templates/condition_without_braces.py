"""NOE325 reports a condition without template braces."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.braces import stray_end
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import Scalar
from noetl.dsl.tree.playbook import Value
from noetl.expr import has_template

GOOD = example("""\
workload: { limit: 10 }
workflow:
  - step: choose
    next:
      arcs:
        - step: many
          when: "{{ workload.limit > 5 }}"
        - step: few
  - step: many
    tool: { kind: noop }
  - step: few
    tool: { kind: noop }
""")
_TRUTHS = frozenset({"true", "false", "1", "0", "yes", "no", "on", "off"})


def check(subject: CheckContext) -> Iterator[Finding]:
    for value in _conditions(subject):
        node = value.at
        if not isinstance(node, Scalar) or not isinstance(node.value, str) or has_template(node.value):
            continue
        text = node.value.strip()
        if text.lower() in _TRUTHS or stray_end(text) is not None:
            continue
        if not text:
            yield at(node, "This condition is empty, so it is always false.", "Write a condition, or remove `when`.")
            continue
        message = "This condition is plain text: it is not evaluated, and text is neither true nor false."
        yield at(node, message, f'Put it in braces: `when: "{{{{ {text.splitlines()[0]} }}}}"`.')


def _conditions(subject: CheckContext) -> Iterator[Value]:
    playbook = subject.playbook
    for task in playbook.all_tasks:
        yield from (rule.when for rule in task.rules or () if rule.when)
    for step in playbook.workflow:
        yield from (rule.when for rule in step.admit or () if rule.when)
        yield from (arc.when for arc in step.arcs if arc.when)


RULE = Rule(
    code="NOE325",
    name="condition-without-braces",
    severity="error",
    summary="A `when` has no template braces.",
    why="Only text in `{{ … }}` is evaluated. Plain text is not a condition, so the rule or arc never matches.",
    fix='Put the condition in braces and quotes: `when: "{{ workload.limit > 5 }}"`. `when: true` needs no braces.',
    bad=GOOD.replace('"{{ workload.limit > 5 }}"', "workload.limit > 5"),
    good=GOOD,
    check=check,
)
