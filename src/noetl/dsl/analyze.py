"""Says what a playbook's flow can do without running it: how steps end, which arcs may be taken, whom gates let in.

Every answer is three-valued: certain, impossible, or not known before a run. A condition that looks neither at the event
nor at the outcome counts as not known, unless it is constant. Nothing is judged or reported here: that is for the rules,
the pictures and the editor. Tested in tests/unit/dsl/test_analyze.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct

from noetl.dsl.outcome import ERROR_FIELDS, ROUTING_EVENTS, STATUSES
from noetl.dsl.playbook import Arc, Assign, Playbook, Step, Value
from noetl.dsl.sites import Site
from noetl.expr import UNKNOWN, Read, Template, Undefined

Truth = bool | None  # None: it depends on the run

EVENT: Final = "event.name"
_ENVELOPES: Final = ("outcome", "output")
_SEEN: Final = frozenset({"event", *_ENVELOPES})
_STATES: Final = frozenset(STATUSES)
_DONE: Final = ("step.done", "call.done", "step.exit")


class Case(NamedTuple):
    """What a condition sees: a status, and the event, whose name equals every one of `events` (none: it is not known)."""

    status: str
    events: tuple[str, ...] = ()
    retryable: bool | None = None

    @property
    def is_success(self) -> bool:
        return self.status == "ok"


OK: Final = Case("ok")
ERROR: Final = Case("error")
SUCCESS: Final = Case("ok", _DONE)
LOOP_SUCCESS: Final = Case("ok", ("loop.done", *_DONE))
FAILURE: Final = Case("error", ("step.failed", "call.error"))
# The second try of `on_step_fail: continue`.
CONTINUED: Final = Case("error", _DONE)
LOOP_CONTINUED: Final = Case("error", ("loop.done", *_DONE))


class Ways(NamedTuple):
    """What a router may do in one case."""

    possible: tuple[Arc, ...]
    certain: tuple[Arc, ...]
    may_be_none: bool


class Admission(NamedTuple):
    """What a gate may answer."""

    may_allow: bool
    may_deny: bool


class Write(Struct, frozen=True):
    """One write to `ctx`, and who does it: a task of the pipeline, the step at its end, or an arc."""

    step: Step
    assign: Assign
    arc: Arc | None = None
    in_task: bool = False


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


@lru_cache(maxsize=64)
def _known(case: Case, event: str | None) -> Mapping[str, Any]:
    """Give the dotted paths whose values a case tells; what an error says stays open."""
    found: dict[str, Any] = {EVENT: event} if event else {}
    for envelope in _ENVELOPES:
        found[f"{envelope}.status"] = case.status
        if not case.is_success:
            found[f"{envelope}.error"] = {"message": "there is an error"}
            found |= {f"{envelope}.error.{name}": UNKNOWN for name in ERROR_FIELDS}
        if case.retryable is not None:
            found[f"{envelope}.error.retryable"] = case.retryable
    return found


@lru_cache(maxsize=4096)
def events_compared(template: Template) -> frozenset[Any]:
    """Give the names of events that a condition asks for."""
    return _compared(template, EVENT)


def _compared(template: Template, path: str) -> frozenset[Any]:
    root, name = path.split(".")
    is_read = any(read.path == (root, name) for read in template.reads)
    return template.values_compared(path) if is_read else frozenset()


@lru_cache(maxsize=4096)
def _asks_for_the_possible(template: Template) -> bool:
    """Tell whether every status and event that a condition compares with can occur, and every part of an error it reads."""
    if any(map(_is_misspelled, template.reads)) or not events_compared(template) <= ROUTING_EVENTS.keys():
        return False
    return all(_compared(template, f"{envelope}.status") <= _STATES for envelope in _ENVELOPES)


def _is_misspelled(read: Read) -> bool:
    path = read.path
    return len(path) > 2 and path[0] in _ENVELOPES and path[1] == "error" and path[2] not in ERROR_FIELDS


@lru_cache(maxsize=16384)
def decided(template: Template, case: Case) -> Truth:
    """Decide a condition in a case; where it compares the event's name with an older one, that one counts.

    A condition that asks for what never occurs is a mistake with a diagnostic of its own: what it was meant to be is not
    known.
    """
    if not any(read.path[0] in _SEEN for read in template.reads):
        return template.decide({}) if template.constant else None
    if not _asks_for_the_possible(template):
        return None
    names: tuple[str | None, ...] = (None,)
    if case.events:
        mentioned = events_compared(template)
        names = tuple(name for name in case.events if name in mentioned) or case.events[:1]
    answers = {template.decide(_known(case, name)) for name in names}
    return answers.pop() if len(answers) == 1 else None


class Missing(NamedTuple):
    """What is not there yet: a key of `ctx`, or all that a step gives when it ends."""

    key: str | None = None
    step: str | None = None

    def known(self) -> Mapping[str, Any]:
        """Give what conditions see of it meanwhile."""
        if self.step is not None:
            asked: dict[str, Any] = {f"{function}({self.step!r})": False for function in ("done", "ok", "fail")}
            return asked | {self.step: Undefined((self.step,))}
        return {f"{name}.{self.key}": Undefined((name, str(self.key))) for name in ("ctx", "vars")}


@lru_cache(maxsize=4096)
def _while_missing(template: Template, missing: Missing) -> Truth:
    return template.decide(missing.known())


class Flow:
    """The flow of one playbook; each answer is worked out once."""

    def __init__(self, playbook: Playbook, sites: Iterable[Site]) -> None:
        self._playbook = playbook
        self._sites = {id(site.node): site for site in sites}
        self._ways: dict[tuple[str, Case], Ways] = {}

    def setting(self, step: Step, name: str) -> Any:
        """Give a setting of a step, or that of the executor where the step has none."""
        own = step.spec.get(name)
        return own.data if own else self._playbook.executor.setting(name)

    def template(self, value: Value | None) -> Template | None:
        """Give the template that a value is; None where it is no text, has no marks, or does not parse."""
        site = self._sites.get(id(value.at)) if value else None
        return site.template if site else None

    def is_unreadable(self, value: Value | None) -> bool:
        """Tell whether a condition is a text that is no condition: no single expression that can be read."""
        if value is None or not isinstance(value.data, str):
            return False
        template = self.template(value)
        return template is None or template.kind != "expression"

    def is_constant(self, value: Value | None) -> bool:
        """Tell whether a condition comes to the same whatever it reads."""
        if value is None or isinstance(value.data, bool):
            return value is not None
        template = self.template(value)
        return template is not None and template.decide({}) is not None

    def holds(self, value: Value | None, case: Case) -> Truth:
        """Tell whether a condition holds in a case; without a condition it does."""
        if value is None or isinstance(value.data, bool):
            return value is None or value.data
        template = self.template(value)
        return None if template is None or template.kind != "expression" else decided(template, case)

    def success(self, step: Step) -> Case:
        return LOOP_SUCCESS if step.loop else SUCCESS

    def endings(self, step: Step) -> tuple[Case, ...]:
        """Give every ending that the router of a step may see, success first."""
        found = (self.success(step), FAILURE)
        if self.setting(step, "on_step_fail") == "continue":
            return (*found, LOOP_CONTINUED if step.loop else CONTINUED)
        return found

    def fires(self, step: Step, arc: Arc, ending: Case) -> Truth:
        """Tell whether an arc matches an ending, whatever the arcs before it do."""
        if ending == FAILURE and arc.label and self.setting(step, "on_step_fail") == f"route_edge:{arc.label}":
            return None
        return ending != FAILURE if arc.when is None else self.holds(arc.when, ending)

    def ways(self, step: Step, ending: Case) -> Ways:
        """Tell which arcs a router may take, and which it is certain to take."""
        key = (step.name, ending)
        if key not in self._ways:
            self._ways[key] = self._pick(step, ending)
        return self._ways[key]

    def _pick(self, step: Step, ending: Case) -> Ways:
        exclusive = step.router is None or step.router.mode == "exclusive"
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

    def admission(self, step: Step, missing: Missing | None = None) -> Admission:
        """Tell what the gate of a step may answer, also while something is not there yet."""
        if step.admit is None:
            return Admission(may_allow=True, may_deny=False)
        allow = deny = False
        for rule in step.admit:
            answer = self._opens(rule.when, missing)
            if answer is False:
                continue
            allow, deny = allow or rule.allow, deny or not rule.allow
            if answer is True:
                return Admission(allow, deny)
        return Admission(allow, may_deny=True)

    def _opens(self, when: Value | None, missing: Missing | None) -> Truth:
        if when is None or isinstance(when.data, bool):
            return when is None or when.data
        template = self.template(when)
        return None if template is None or missing is None else _while_missing(template, missing)
