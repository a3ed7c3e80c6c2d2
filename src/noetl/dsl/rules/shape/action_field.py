"""NOE120 reports an action with the wrong fields, such as `jump` without `to`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.grammar.wording import listed
from noetl.dsl.reading.nodes import MapNode, Scalar
from noetl.dsl.tree.playbook import Action

GOOD = example("""\
workflow:
  - step: ping
    tool:
      kind: http
      url: https://example.org/ping
      spec:
        policy:
          rules:
            - when: "{{ outcome.status == 'error' and outcome.error.retryable }}"
              then: { do: retry, attempts: 5, delay: 2, backoff: exponential }
            - when: "{{ outcome.status == 'error' }}"
              then: { do: fail }
            - else: { then: { do: continue } }
""")
_ACTIONS = frozenset({"continue", "retry", "jump", "break", "fail", "skip"})
_OF_RETRY = ("attempts", "delay", "backoff", "max_delay", "jitter")


def check(subject: CheckContext) -> Iterator[Finding]:
    for task in subject.playbook.all_tasks:
        for rule in task.rules or ():
            node = rule.then.at
            if isinstance(node, MapNode) and "do" in node and rule.then.do in _ACTIONS:
                yield from _retry(rule.then, node)
                yield from _jump(rule.then, node)


def _retry(action: Action, node: MapNode) -> Iterator[Finding]:
    written = [entry for name in _OF_RETRY if (entry := node.entry(name))]
    if action.do != "retry" and written:
        names = listed([entry.key.text for entry in written])
        message = f"{names} {'are' if len(written) > 1 else 'is'} for `do: retry`, but this rule has `do: {action.do}`."
        yield at(written[0].key, message, "Write `do: retry`, or remove its fields.")
    attempts = node.get("attempts")
    if action.do == "retry" and isinstance(attempts, Scalar) and attempts.value == 1 and attempts.value is not True:
        message = "`attempts` includes the first run: with 1 the task is never retried."
        yield at(attempts, message, "Write 2 for one retry, or `do: fail`.", "warning")


def _jump(action: Action, node: MapNode) -> Iterator[Finding]:
    target = node.entry("to")
    if action.do == "jump" and action.to is None:
        message = "`do: jump` has no target."
        yield at(
            node.get("do") or node, message, "Add `to:` with the label of a task in this pipeline, or `to: previous`."
        )
    elif action.do != "jump" and target:
        message = f"'to' is for `do: jump`, but this rule has `do: {action.do}`."
        yield at(target.key, message, "Write `do: jump`, or remove `to`.")


RULE = Rule(
    code="NOE120",
    name="action-field",
    severity="error",
    summary="An action lacks a required field, or has a field of another action.",
    why="Only `retry` uses `attempts`, `delay` and similar fields, and only `jump` uses `to`. Next to another action "
    "they suggest that you meant that action, while the run would perform the other one.",
    fix="Make the action and its fields match: `do: retry` with `attempts`, `do: jump` with `to`.",
    bad=GOOD.replace("do: retry, attempts", "do: continue, attempts"),
    good=GOOD,
    check=check,
)
