"""Says what a playbook's flow can do without running it: how steps end, which arcs may be taken, whom gates let in.

Every answer is three-valued: certain, impossible, or not known before a run. Nothing is judged or reported here: that is
for the rules, the pictures and the editor. Tested in tests/unit/dsl/test_analyze.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from noetl.dsl.net import Net
from noetl.dsl.outcome import ERROR_FIELDS
from noetl.dsl.playbook import AdmitRule, Arc, Assign, Playbook, Step, Value
from noetl.expr import UNKNOWN, Template, TemplateError, compile_template

Truth = bool | None  # None: it depends on the run

EVENT = "event.name"
DONE = ("step.done", "call.done", "step.exit")
LOOP_DONE = ("loop.done", *DONE)
FAILED = ("step.failed", "call.error")


OK_OUTCOME: Mapping[str, Any] = {"outcome.status": "ok"}
ERROR_OUTCOME: Mapping[str, Any] = {
    "outcome.status": "error",
    "outcome.error": {"message": "it is there, what it says is not known"},
    **{f"outcome.error.{part}": UNKNOWN for part in ERROR_FIELDS},
}


class Ending(NamedTuple):
    """One way in which a step can end, as its router sees it; every one of `names` equals the event's name."""

    names: tuple[str, ...]
    status: str

    @property
    def is_success(self) -> bool:
        return self.status == "ok"


SUCCESS = Ending(DONE, "ok")
LOOP_SUCCESS = Ending(LOOP_DONE, "ok")
FAILURE = Ending(FAILED, "error")
CONTINUED = Ending(DONE, "error")  # the second try of `on_step_fail: continue`
LOOP_CONTINUED = Ending(LOOP_DONE, "error")


class Ways(NamedTuple):
    """What a router may do with one ending."""

    possible: tuple[Arc, ...]
    certain: tuple[Arc, ...]
    may_be_none: bool


@dataclass(frozen=True, slots=True)
class Admission:
    """What a gate may answer."""

    may_allow: bool
    may_deny: bool


@dataclass(frozen=True, slots=True)
class Write:
    """One write to `ctx`, and who does it: a task of the pipeline, the step at its end, or an arc."""

    step: Step
    assign: Assign
    arc: Arc | None = None
    in_task: bool = False


def template_of(value: Value | None) -> Template | None:
    """Give the template that a value is; None where it is no text, has no marks, or does not parse."""
    if value is None or not isinstance(value.data, str) or "{" not in value.data:
        return None
    try:
        template = compile_template(value.data)
    except TemplateError:
        return None
    return None if template.kind == "plain" else template


def is_unreadable(value: Value | None) -> bool:
    """Tell whether a condition is a text that is no condition: it has no template marks, or does not parse."""
    return value is not None and isinstance(value.data, str) and template_of(value) is None


def truth(value: Value | None, known: Mapping[str, Any]) -> Truth:
    """Tell what a condition comes to where only these paths are known."""
    if value is not None and isinstance(value.data, bool):
        return value.data
    template = template_of(value)
    return None if template is None else template.decide(known)


def writes(step: Step) -> Iterator[Write]:
    """Give every write to `ctx` that a step, its tasks or its arcs may do, in file order of the parts."""
    for task in step.tasks:
        for assign in (*task.sets, *(assign for rule in task.rules or () for assign in rule.then.sets)):
            if assign.scope == "ctx":
                yield Write(step, assign, in_task=True)
    for assign in step.sets:
        if assign.scope == "ctx":
            yield Write(step, assign)
    for arc in step.arcs:
        for assign in arc.sets:
            if assign.scope == "ctx":
                yield Write(step, assign, arc)


class Flow:
    """The flow of one playbook; each answer is worked out once."""

    def __init__(self, playbook: Playbook, net: Net) -> None:
        self._playbook = playbook
        self.net = net
        self._ways: dict[tuple[str, Ending], Ways] = {}
        self._fires: dict[tuple[int, Ending], Truth] = {}

    def setting(self, step: Step, name: str) -> Any:
        """Give a setting of a step, or that of the executor where the step has none."""
        own = step.spec.get(name)
        return own.data if own else self._playbook.executor.setting(name)

    def success(self, step: Step) -> Ending:
        return LOOP_SUCCESS if step.loop else SUCCESS

    def endings(self, step: Step) -> tuple[Ending, ...]:
        """Give every ending that the router of a step may see."""
        found = (self.success(step), FAILURE)
        if self.setting(step, "on_step_fail") == "continue":
            return (*found, LOOP_CONTINUED if step.loop else CONTINUED)
        return found

    def fires(self, step: Step, arc: Arc, ending: Ending) -> Truth:
        """Tell whether the condition of an arc holds for an ending, whatever the arcs before it do."""
        key = (id(arc), ending)
        if key not in self._fires:
            self._fires[key] = self._decide(step, arc, ending)
        return self._fires[key]

    def _decide(self, step: Step, arc: Arc, ending: Ending) -> Truth:
        if ending is FAILURE and arc.label and self.setting(step, "on_step_fail") == f"route_edge:{arc.label}":
            return None
        if arc.when is None:
            return ending is not FAILURE
        if isinstance(arc.when.data, bool):
            return arc.when.data
        template = template_of(arc.when)
        return None if template is None else decided(template, ending)

    def ways(self, step: Step, ending: Ending) -> Ways:
        """Tell which arcs a router may take, and which it is certain to take."""
        key = (step.name, ending)
        if key not in self._ways:
            exclusive = step.router is None or step.router.mode == "exclusive"
            self._ways[key] = self._pick(step, ending, exclusive)
        return self._ways[key]

    def _pick(self, step: Step, ending: Ending, exclusive: bool) -> Ways:
        possible: list[Arc] = []
        certain: list[Arc] = []
        for arc in step.arcs:
            answer = self.fires(step, arc, ending)
            if answer is False:
                continue
            possible.append(arc)
            if answer is True:
                certain.append(arc)
                if exclusive:
                    break
        may_be_none = not certain
        if exclusive and len(possible) > 1:
            certain = []  # an arc before the certain one may be taken instead
        return Ways(tuple(possible), tuple(certain), may_be_none)


def decided(template: Template, ending: Ending) -> Truth:
    """Decide a condition for an ending; where it compares the event's name with an older one, that one counts."""
    mentioned = template.values_compared(EVENT)
    names = [name for name in ending.names if name in mentioned] or ending.names[:1]
    outcome = OK_OUTCOME if ending.is_success else ERROR_OUTCOME
    answers = {template.decide({EVENT: name, **outcome}) for name in names}
    return answers.pop() if len(answers) == 1 else None


def admission(rules: Iterable[AdmitRule] | None, known: Mapping[str, Any]) -> Admission:
    """Tell what a gate may answer; without rules it lets everybody in."""
    if rules is None:
        return Admission(may_allow=True, may_deny=False)
    allow = deny = False
    for rule in rules:
        answer = True if rule.is_else else truth(rule.when, known)
        if answer is False:
            continue
        allow, deny = allow or rule.allow, deny or not rule.allow
        if answer is True:
            return Admission(allow, deny)
    return Admission(allow, may_deny=True)
