"""The canonical tree of a playbook, independent of the spelling in the file.

All classes are frozen. `at` points to the source and is ignored by equality, so two spellings of one playbook are equal trees.
Templates are kept as text with canonical names (`outcome`, `ctx`). Tested in tests/unit/dsl/tree/test_normalize.py.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

from noetl.dsl.reading.nodes import Node, Scalar

SetScope = Literal["ctx", "iter", "step"]
Mode = Literal["exclusive", "inclusive"]


class Part(Struct, frozen=True, eq=False):
    """A part of the tree; equality ignores position and spelling."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        ignored = ("at", "api_version")
        names = (name for name in self.__struct_fields__ if name not in ignored and not name.endswith("_at"))
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]  # most parts hold maps


class Value(Part, frozen=True, eq=False):
    """A free value of the playbook: plain data with templates as text."""

    data: Any
    at: Node | None = None


class Assign(Part, frozen=True, eq=False):
    """One write of a `set`: `ctx.total` is scope `ctx`, key `total`."""

    scope: SetScope
    key: str
    value: Value
    at: Scalar | None = None

    @property
    def target(self) -> str:
        return f"{self.scope}.{self.key}"


class Action(Part, frozen=True, eq=False):
    """The action of a task rule."""

    do: str
    attempts: Value | None = None
    delay: Value | None = None
    backoff: Value | None = None
    max_delay: Value | None = None
    jitter: Value | None = None
    to: str | None = None
    sets: tuple[Assign, ...] = ()
    at: Node | None = None


class TaskRule(Part, frozen=True, eq=False):
    """One rule of a task policy; `when` is None for `else`."""

    when: Value | None
    then: Action
    at: Node | None = None

    @property
    def is_else(self) -> bool:
        return self.when is None


class AdmitRule(Part, frozen=True, eq=False):
    """One rule of an admission gate; `when` is None for `else`."""

    when: Value | None
    allow: bool
    at: Node | None = None
    skips: bool = False  # an admitted token does not run the step

    @property
    def is_else(self) -> bool:
        return self.when is None


class Task(Part, frozen=True, eq=False):
    """One tool call of a pipeline; `fields` are the inputs of its kind."""

    label: str
    kind: str
    fields: dict[str, Value]
    input: dict[str, Value] = {}
    rules: tuple[TaskRule, ...] | None = None  # None: no policy, so the runtime retry applies
    on_unmatched: str = "continue"
    sets: tuple[Assign, ...] = ()
    spec: dict[str, Value] = {}
    auth: Value | None = None
    timeout_ms: Value | None = None
    desc: str = ""
    at: Node | None = None
    label_at: Scalar | None = None
    rules_at: Node | None = None


def default_label(step: str) -> str:
    """Return the label of a step's only task where it has none of its own."""
    return f"{step}_task"


class Loop(Part, frozen=True, eq=False):
    """The loop of a step, over a list (`items`) or claimed rows (`cursor`)."""

    items: Value | None
    iterator: str
    cursor: dict[str, Value] | None = None
    spec: dict[str, Value] = {}
    item_timeout_ms: Value | None = None
    total_timeout_ms: Value | None = None
    at: Node | None = None
    iterator_at: Node | None = None

    @property
    def mode(self) -> Any:
        value = self.spec.get("mode")
        return value.data if value else "sequential"


class Arc(Part, frozen=True, eq=False):
    """One arc of a router; without `when` it matches success only."""

    step: str
    when: Value | None = None
    args: dict[str, Value] = {}
    sets: tuple[Assign, ...] = ()
    label: str | None = None
    spec: dict[str, Value] = {}
    at: Node | None = None
    step_at: Scalar | None = None


class Router(Part, frozen=True, eq=False):
    """The router of a step: its arcs in file order."""

    arcs: tuple[Arc, ...]
    mode: Mode = "exclusive"
    spec: dict[str, Value] = {}
    at: Node | None = None


class Step(Part, frozen=True, eq=False):
    """A transition of the net: admission gate, pipeline, router."""

    name: str
    tasks: tuple[Task, ...] = ()
    router: Router | None = None
    admit: tuple[AdmitRule, ...] | None = None
    loop: Loop | None = None
    input: dict[str, Value] = {}
    sets: tuple[Assign, ...] = ()
    spec: dict[str, Value] = {}
    compensate: str | None = None
    desc: str = ""
    at: Node | None = None
    name_at: Scalar | None = None
    compensate_at: Scalar | None = None
    admit_at: Node | None = None

    @property
    def arcs(self) -> tuple[Arc, ...]:
        return self.router.arcs if self.router else ()

    @property
    def join(self) -> Any:
        value = self.spec.get("join")
        return value.data if value else "all"


class Executor(Part, frozen=True, eq=False):
    """The settings of the execution."""

    profile: str = "auto"
    spec: dict[str, Value] = {}
    requires: Value | None = None
    at: Node | None = None

    def setting(self, name: str) -> Any:
        value = self.spec.get(name)
        return value.data if value else None


class Keychain(Part, frozen=True, eq=False):
    """One credential that the playbook declares."""

    name: str
    fields: dict[str, Value] = {}
    at: Node | None = None


OF_THE_START: Final = ("dispatch", "paused")  # fields of a subscription that say what it starts, and when
NOTIFICATION: Final = "notification"  # kind of trigger: an entry of `notifications`


class Trigger(Part, frozen=True, eq=False):
    """Schedule, webhook or other trigger of the playbook, or a notification."""

    kind: str  # key that holds the name
    name: str
    fields: dict[str, Value] = {}
    at: Node | None = None


class Playbook(Part, frozen=True, eq=False):
    """A playbook in canonical form; equality ignores `api_version`."""

    name: str
    path: str
    workflow: tuple[Step, ...]
    api_version: str = "noetl.io/v10"
    metadata: dict[str, Value] = {}
    keychain: tuple[Keychain, ...] = ()
    executor: Executor = Executor()
    workload: dict[str, Value] = {}
    workbook: tuple[Task, ...] = ()
    rollback: str | None = None
    triggers: tuple[Trigger, ...] = ()
    at: Node | None = None

    @property
    def all_tasks(self) -> tuple[Task, ...]:
        """Every task, those of the workbook first."""
        return (*self.workbook, *(task for step in self.workflow for task in step.tasks))

    def step(self, name: str) -> Step | None:
        return next((step for step in self.workflow if step.name == name), None)

    @property
    def entry(self) -> str | None:
        named = self.executor.setting("entry_step")
        if isinstance(named, str):
            return named
        return self.workflow[0].name if self.workflow else None
