"""NOE415 reports a jump that repeats a pipeline forever."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.flow import ERROR, OK, Flow
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode
from noetl.dsl.rules.graph.policies import misread
from noetl.dsl.tree.playbook import Action, Step, Task

GOOD = example("""\
workflow:
  - step: read_pages
    tool:
      - page:
          kind: http
          url: "https://example.org/pages/{{ ctx.page | default(1) }}"
          set: { ctx.page: "{{ output.data.next }}" }
      - turn:
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ ctx.page }}"
                  then: { do: jump, to: page }
                - else:
                    then: { do: break }
""")
BAD = GOOD.replace(
    """\
                - when: "{{ ctx.page }}"
                  then: { do: jump, to: page }
                - else:
                    then: { do: break }
""",
    """\
                - else:
                    then: { do: jump, to: page }
""",
)


def check(subject: CheckContext) -> Iterator[Finding]:
    steps = [step for step in subject.playbook.workflow if any(_jumps(task) for task in step.tasks)]
    broken = misread(subject)
    for step in steps:
        if step.at is not None and not broken.any_in(step.at.start, step.at.end):
            yield from _endless(subject.flow, step)


def _jumps(task: Task) -> bool:
    return any(rule.then.do == "jump" for rule in task.rules or ())


def _endless(flow: Flow, step: Step) -> Iterator[Finding]:
    end = len(step.tasks)
    labels = {task.label: number for number, task in enumerate(step.tasks)}
    follows = [_follows(flow, task, number, labels, end) for number, task in enumerate(step.tasks)]
    leaving = _leaving(follows, end)
    for number, task in enumerate(step.tasks):
        for rule in task.rules or ():
            target = _target(rule.then, number, labels, end)
            if number in leaving or rule.then.do != "jump" or target > number:
                continue
            node = rule.then.at.get("to") if isinstance(rule.then.at, MapNode) else None
            if node is not None:
                goal = step.tasks[target].label
                yield at(
                    node,
                    f"Task '{task.label}' jumps back to '{goal}' after every success, and no rule leads out.",
                    "Jump only while there is more to do (`when: …`), and end with `- else: { then: { do: break } }`.",
                )
                return


def _leaving(follows: list[set[int]], end: int) -> set[int]:
    """Return the tasks from which the end can be reached."""
    before: dict[int, list[int]] = {}
    for number, followers in enumerate(follows):
        for follower in followers:
            before.setdefault(follower, []).append(number)
    leaving, pending = {end}, [end]
    while pending:
        for number in before.get(pending.pop(), ()):
            if number not in leaving:
                leaving.add(number)
                pending.append(number)
    return leaving


def _follows(flow: Flow, task: Task, number: int, labels: dict[str, int], end: int) -> set[int]:
    """Return the tasks that may run next; a plain failure does not count as a way out."""
    if task.rules is None:
        return {number + 1}
    followers: set[int] = set()
    for outcome in (OK, ERROR):
        for rule in task.rules:
            answer = flow.holds(rule.when, outcome)
            if flow.is_unreadable(rule.when):
                return {end}
            if answer is not False and (outcome.is_success or rule.then.do not in ("fail", "retry")):
                followers.add(_target(rule.then, number, labels, end))
            if answer is True:
                break
        else:
            if outcome.is_success or task.on_unmatched != "fail":
                followers.add(number + 1)
    return followers


def _target(action: Action, number: int, labels: dict[str, int], end: int) -> int:
    if action.do in ("continue", "skip"):
        return number + 1
    if action.do != "jump":
        return end
    if action.to == "previous":
        return max(number - 1, 0)
    return labels.get(action.to or "", end)


RULE = Rule(
    code="NOE415",
    name="endless-jump",
    severity="error",
    summary="A pipeline jumps back after every success, with no rule that leads out.",
    why=(
        "The pipeline runs until a task fails or the number of task starts reaches `limits.max_transitions` (default: one "
        "million); then the step fails."
    ),
    fix="Add a condition to the jump that becomes false, and leave the cycle with `break` or by continuing.",
    bad=BAD,
    good=GOOD,
    check=check,
)
