"""The canonical tree of a playbook: what every spelling becomes before anything else looks at it.

All classes are frozen. `at` points back to the source and takes no part in equality, so two spellings of one playbook
are equal trees. Templates are kept as text in the canonical names (`outcome`, `ctx`). Built by `normalize`, written back
by `canonical`; tested in tests/unit/dsl/test_normalize.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from noetl.dsl.nodes import Node, Scalar

SetScope = Literal["ctx", "iter", "step"]
Mode = Literal["exclusive", "inclusive"]


def _source() -> Any:
    return field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Value:
    """A free value of the playbook: plain data, templates still as text."""

    data: Any
    at: Node | None = _source()


@dataclass(frozen=True, slots=True)
class Assign:
    """One write of a `set`: `ctx.total` is scope `ctx`, key `total`."""

    scope: SetScope
    key: str
    value: Value
    at: Scalar | None = _source()

    @property
    def target(self) -> str:
        return f"{self.scope}.{self.key}"


@dataclass(frozen=True, slots=True)
class Action:
    """What a matching task rule does."""

    do: str
    attempts: Value | None = None
    delay: Value | None = None
    backoff: Value | None = None
    max_delay: Value | None = None
    jitter: Value | None = None
    to: str | None = None
    sets: tuple[Assign, ...] = ()
    at: Node | None = _source()


@dataclass(frozen=True, slots=True)
class TaskRule:
    """One rule of a task policy; `when` is None for `else`."""

    when: Value | None
    then: Action
    at: Node | None = _source()

    @property
    def is_else(self) -> bool:
        return self.when is None


@dataclass(frozen=True, slots=True)
class AdmitRule:
    """One rule of an admission gate; `when` is None for `else`."""

    when: Value | None
    allow: bool
    at: Node | None = _source()

    @property
    def is_else(self) -> bool:
        return self.when is None


@dataclass(frozen=True, slots=True)
class Task:
    """One labelled tool call of a pipeline; `fields` are the kind's own inputs, `spec` what is layered over it."""

    label: str
    kind: str
    fields: dict[str, Value]
    input: dict[str, Value] = field(default_factory=dict)
    rules: tuple[TaskRule, ...] | None = None  # None: no policy, the runtime retry decides
    on_unmatched: str = "continue"
    sets: tuple[Assign, ...] = ()
    spec: dict[str, Value] = field(default_factory=dict)
    auth: Value | None = None
    timeout_ms: Value | None = None
    desc: str = ""
    at: Node | None = _source()
    label_at: Scalar | None = _source()
    rules_at: Node | None = _source()


@dataclass(frozen=True, slots=True)
class Loop:
    """The repetition of a step: over a list (`items`) or over rows claimed from a store (`cursor`)."""

    items: Value | None
    iterator: str
    cursor: dict[str, Value] | None = None
    spec: dict[str, Value] = field(default_factory=dict)
    item_timeout_ms: Value | None = None
    total_timeout_ms: Value | None = None
    at: Node | None = _source()
    iterator_at: Node | None = _source()

    @property
    def mode(self) -> Any:
        value = self.spec.get("mode")
        return value.data if value else "sequential"


@dataclass(frozen=True, slots=True)
class Arc:
    """One way out of a step; `when` is None where the arc matches success only."""

    step: str
    when: Value | None = None
    args: dict[str, Value] = field(default_factory=dict)
    sets: tuple[Assign, ...] = ()
    label: str | None = None
    spec: dict[str, Value] = field(default_factory=dict)
    at: Node | None = _source()
    step_at: Scalar | None = _source()


@dataclass(frozen=True, slots=True)
class Router:
    """The ways out of a step, in file order."""

    arcs: tuple[Arc, ...]
    mode: Mode = "exclusive"
    spec: dict[str, Value] = field(default_factory=dict)
    at: Node | None = _source()


@dataclass(frozen=True, slots=True)
class Step:
    """A transition of the net: admission gate, pipeline, router."""

    name: str
    tasks: tuple[Task, ...] = ()
    router: Router | None = None
    admit: tuple[AdmitRule, ...] | None = None
    loop: Loop | None = None
    input: dict[str, Value] = field(default_factory=dict)
    sets: tuple[Assign, ...] = ()
    spec: dict[str, Value] = field(default_factory=dict)
    compensate: str | None = None
    desc: str = ""
    at: Node | None = _source()
    name_at: Scalar | None = _source()
    compensate_at: Scalar | None = _source()
    admit_at: Node | None = _source()

    @property
    def arcs(self) -> tuple[Arc, ...]:
        return self.router.arcs if self.router else ()

    @property
    def join(self) -> Any:
        value = self.spec.get("join")
        return value.data if value else "all"


@dataclass(frozen=True, slots=True)
class Executor:
    """How the playbook wants to be run."""

    profile: str = "auto"
    spec: dict[str, Value] = field(default_factory=dict)
    requires: Value | None = None
    at: Node | None = _source()

    def setting(self, name: str) -> Any:
        value = self.spec.get(name)
        return value.data if value else None


@dataclass(frozen=True, slots=True)
class Keychain:
    """One named credential that the playbook declares."""

    name: str
    fields: dict[str, Value] = field(default_factory=dict)
    at: Node | None = _source()


@dataclass(frozen=True, slots=True)
class Playbook:
    """A whole playbook in its canonical form; `api_version` names the spelling it came in and is not compared."""

    name: str
    path: str
    workflow: tuple[Step, ...]
    api_version: str = field(default="noetl.io/v10", compare=False)
    metadata: dict[str, Value] = field(default_factory=dict)
    keychain: tuple[Keychain, ...] = ()
    executor: Executor = field(default_factory=Executor)
    workload: dict[str, Value] = field(default_factory=dict)
    workbook: tuple[Task, ...] = ()
    rollback: str | None = None
    at: Node | None = _source()

    def step(self, name: str) -> Step | None:
        return next((step for step in self.workflow if step.name == name), None)

    @property
    def entry(self) -> str | None:
        named = self.executor.setting("entry_step")
        if isinstance(named, str):
            return named
        return self.workflow[0].name if self.workflow else None
