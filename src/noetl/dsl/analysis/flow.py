"""Static analysis of a flow: how steps end, which arcs fire, what gates admit.

Every answer is three-valued: certain, impossible, or unknown before a run. Tested in tests/unit/dsl/analysis/test_flow.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct

from noetl.dsl.analysis.outcomes import ERROR_FIELDS, ROUTING_EVENTS, STATUSES
from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.tree.playbook import Arc, Assign, Playbook, Step, Value
from noetl.expr import UNKNOWN, Read, Template, Undefined
from noetl.model.events import names_of

Truth = bool | None  # None: it depends on the run

EVENT: Final = "event.name"
_ENVELOPES: Final = ("outcome", "output")
_SEEN: Final = frozenset({"event", *_ENVELOPES})
_STATES: Final = frozenset(STATUSES)
_DONE: Final = names_of("step.done")
_LOOP_DONE: Final = (*names_of("loop.done"), *_DONE)


class Case(NamedTuple):
    """A status, and an event that has each name in `events` (empty: unknown)."""

    status: str
    events: tuple[str, ...] = ()
    retryable: bool | None = None

    @property
    def is_success(self) -> bool:
        return self.status == "ok"


OK: Final = Case("ok")
ERROR: Final = Case("error")
SUCCESS: Final = Case("ok", _DONE)
LOOP_SUCCESS: Final = Case("ok", _LOOP_DONE)
FAILURE: Final = Case("error", names_of("step.failed"))
# The second evaluation under `on_step_fail: continue`.
CONTINUED: Final = Case("error", _DONE)
LOOP_CONTINUED: Final = Case("error", _LOOP_DONE)


class Ways(NamedTuple):
    """The arcs that a router may take in one case."""

    possible: tuple[Arc, ...]
    certain: tuple[Arc, ...]
    may_be_none: bool


class Admission(NamedTuple):
    """The possible decisions of a gate."""

    may_allow: bool
    may_deny: bool


class Write(Struct, frozen=True):
    """One write to `ctx` by a task, by the step at its end, or by an arc."""

    step: Step
    assign: Assign
    arc: Arc | None = None
    in_task: bool = False


def writes(step: Step) -> Iterator[Write]:
    """Yield every write to `ctx` of a step's tasks, of the step and of its arcs."""
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
    values: dict[str, Any] = {EVENT: event} if event else {}
    for envelope in _ENVELOPES:
        values[f"{envelope}.status"] = case.status
        if not case.is_success:
            values[f"{envelope}.error"] = {"message": "there is an error"}
            values |= {f"{envelope}.error.{name}": UNKNOWN for name in ERROR_FIELDS}
        if case.retryable is not None:
            values[f"{envelope}.error.retryable"] = case.retryable
    return values


@lru_cache(maxsize=4096)
def events_compared(template: Template) -> frozenset[Any]:
    """Return the event names that a condition compares with."""
    return _compared(template, EVENT)


def _compared(template: Template, path: str) -> frozenset[Any]:
    root, name = path.split(".")
    is_read = any(read.path == (root, name) for read in template.reads)
    return template.values_compared(path) if is_read else frozenset()


@lru_cache(maxsize=4096)
def _compares_with_existing(template: Template) -> bool:
    if any(map(_is_misspelled, template.reads)) or not events_compared(template) <= ROUTING_EVENTS.keys():
        return False
    return all(_compared(template, f"{envelope}.status") <= _STATES for envelope in _ENVELOPES)


def _is_misspelled(read: Read) -> bool:
    path = read.path
    return len(path) > 2 and path[0] in _ENVELOPES and path[1] == "error" and path[2] not in ERROR_FIELDS


@lru_cache(maxsize=16384)
def decided(template: Template, case: Case) -> Truth:
    """Decide a condition in a case; older event names count where it uses them.

    A condition on something that never occurs has its own diagnostic, and its intended value is unknown.
    """
    if not any(read.path[0] in _SEEN for read in template.reads):
        return template.decide({}) if template.constant else None
    if not _compares_with_existing(template):
        return None
    names: tuple[str | None, ...] = (None,)
    if case.events:
        mentioned = events_compared(template)
        names = tuple(name for name in case.events if name in mentioned) or case.events[:1]
    answers = {template.decide(_known(case, name)) for name in names}
    return answers.pop() if len(answers) == 1 else None


class Missing(NamedTuple):
    """A value that does not exist yet: a key of `ctx`, or the result of a step."""

    key: str | None = None
    step: str | None = None

    def known(self) -> Mapping[str, Any]:
        """Return what conditions read until it exists."""
        if self.step is not None:
            functions: dict[str, Any] = {f"{function}({self.step!r})": False for function in ("done", "ok", "fail")}
            return functions | {self.step: Undefined((self.step,))}
        return {f"{name}.{self.key}": Undefined((name, str(self.key))) for name in ("ctx", "vars")}


@lru_cache(maxsize=4096)
def _while_missing(template: Template, missing: Missing) -> Truth:
    return template.decide(missing.known())


class Flow:
    """The flow of one playbook; answers are cached."""

    def __init__(self, playbook: Playbook, sites: Iterable[TemplateSite]) -> None:
        self._playbook = playbook
        self._sites = {id(site.node): site for site in sites}
        self._ways: dict[tuple[str, Case], Ways] = {}

    def setting(self, step: Step, name: str) -> Any:
        """Return a setting of a step, or of the executor where the step has none."""
        own = step.spec.get(name)
        return own.data if own else self._playbook.executor.setting(name)

    def template(self, value: Value | None) -> Template | None:
        """Return the template of a value; None without braces or if it does not parse."""
        site = self._sites.get(id(value.at)) if value else None
        return site.template if site else None

    def is_unreadable(self, value: Value | None) -> bool:
        """Return whether a condition is text that is not a single valid expression."""
        if value is None or not isinstance(value.data, str):
            return False
        template = self.template(value)
        return template is None or template.kind != "expression"

    def is_constant(self, value: Value | None) -> bool:
        """Return whether a condition has the same value whatever it reads."""
        if value is None or isinstance(value.data, bool):
            return value is not None
        template = self.template(value)
        return template is not None and template.decide({}) is not None

    def holds(self, value: Value | None, case: Case) -> Truth:
        """Return whether a condition holds in a case; a missing condition holds."""
        if value is None or isinstance(value.data, bool):
            return value is None or value.data
        template = self.template(value)
        return None if template is None or template.kind != "expression" else decided(template, case)

    def success(self, step: Step) -> Case:
        return LOOP_SUCCESS if step.loop else SUCCESS

    def endings(self, step: Step) -> tuple[Case, ...]:
        """Return every ending that the router of a step may handle, success first."""
        endings = (self.success(step), FAILURE)
        if self.setting(step, "on_step_fail") == "continue":
            return (*endings, LOOP_CONTINUED if step.loop else CONTINUED)
        return endings

    def fires(self, step: Step, arc: Arc, ending: Case) -> Truth:
        """Return whether an arc matches an ending, regardless of the arcs before it."""
        if ending == FAILURE and arc.label and self.setting(step, "on_step_fail") == f"route_edge:{arc.label}":
            return None
        return ending != FAILURE if arc.when is None else self.holds(arc.when, ending)

    def ways(self, step: Step, ending: Case) -> Ways:
        """Return the arcs that a router may take, and those that it certainly takes."""
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
        """Return the possible decisions of a step's gate, also while a value is missing."""
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
