"""Cache of a worker: playbooks, and the plans of their steps.

A pinned tree is fetched once, and a step is planned once; again only if the settings for executions have changed, as
they may with another server. Runs nothing. Tested in tests/unit/worker/steps/test_playbook_cache.py.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from noetl.dsl.tree.pin import unpinned
from noetl.dsl.tree.playbook import Playbook, Step
from noetl.engine.plan.patches import patched, patched_calls
from noetl.engine.plan.plan import Plan, plan
from noetl.engine.tasks.run_info import RunInfo, for_step, info_for
from noetl.engine.tasks.task_plan import Layered, is_constant
from noetl.model.errors import NoetlError, StoreUnavailable, log_level
from noetl.model.work import WorkItem
from noetl.observe.task_facts import TaskFacts, sink_of
from noetl.worker.steps.provenance import runtime_of
from noetl.worker.tool_context import WorkerResources

_MOST: Final = 64
_AGAIN_S: Final = 0.5

_log = logging.getLogger(__name__)


class _Book:
    def __init__(self, content: str, playbook: Playbook, shared: WorkerResources) -> None:
        self.playbook = playbook
        self.steps = {step.name: step for step in playbook.workflow}
        self.info = info_for(playbook, shared.kinds, shared.secrets.holds)
        self.image = shared.image
        self._content = content
        self._plan: Plan | None = None
        self.settle(shared.defaults)

    def settle(self, defaults: Mapping[str, Any]) -> None:
        """Discard the plans and use new settings for executions."""
        self.plans: dict[str, PlannedStep] = {}
        self.layered = Layered(dict(defaults)).over(self.playbook.executor.spec)

    def plan(self) -> Plan:
        """Return the plan of the playbook, which only few steps need on a worker."""
        if self._plan is None:
            self._plan = plan(self.playbook, self._content)
        return self._plan


class PlannedStep:
    """A step, and what all of its runs have in common."""

    __slots__ = (
        "_book", "_sinks", "evaluates", "facts", "info", "is_best_effort", "is_parallel", "playbook", "runtime", "step",
    )  # fmt: skip

    def __init__(self, book: _Book, step: Step, info: RunInfo, image: str) -> None:
        self._book = book
        self.playbook = book.playbook
        self.step = step
        self.info = info
        self.runtime = runtime_of(step, info.kinds, image)
        self.evaluates = not all(map(is_constant, info.plans))  # templates, when it runs
        self.facts: dict[str, TaskFacts] = {}  # what logs show of its tasks
        self._sinks: dict[str, str | None] = {}
        self.is_parallel = step.loop is not None and step.loop.mode == "parallel"
        self.is_best_effort = _is_best_effort(info.settings)

    def sink(self, label: str) -> str | None:
        """Return the sink of a task, also of a workbook task that the step calls."""
        if label not in self._sinks:
            self._sinks[label] = sink_of(self.step.tasks, self.playbook.workbook, label)
        return self._sinks[label]

    @property
    def reads(self) -> frozenset[tuple[str | int, ...]]:
        """The paths that templates of the step read."""
        return self._book.plan().reads(self.step)

    @property
    def reads_all(self) -> bool:
        """Whether the step's code reads everything."""
        return self._book.plan().reads_all(self.step)


def _is_best_effort(settings: Mapping[str, Any]) -> bool:
    found: Any = settings.get("policy")
    for key in ("failure", "mode"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return bool(found == "best_effort")


class Playbooks:
    """Cached playbooks by content hash."""

    def __init__(self, shared: WorkerResources) -> None:
        self._shared = shared
        self._books: dict[str, _Book] = {}
        self._defaults: dict[str, Any] = {}  # the settings for executions that plans were made with

    def cached(self, work: WorkItem) -> PlannedStep | None:
        """Return the plan of a work item's step; None if its playbook is not cached."""
        book = self._books.get(work.playbook)
        if book is None:
            return None
        if self._defaults != self._shared.defaults:
            self._settle()
        return (book.plans.get(work.step) if work.patch is None else None) or self._planned(book, work)

    async def fetched(self, work: WorkItem) -> PlannedStep:
        """Fetch the playbook, and return the plan of the step."""
        tree = unpinned(await self._fetch(work.playbook))
        if self._defaults != self._shared.defaults:
            self._settle()
        self._books[work.playbook] = book = _Book(work.playbook, tree, self._shared)
        while len(self._books) > _MOST:
            del self._books[next(iter(self._books))]
        return self._planned(book, work)

    def _planned(self, book: _Book, work: WorkItem) -> PlannedStep:
        """Plan a step; a replay may have it in another form."""
        step, kinds = book.steps.get(work.step), self._shared.kinds
        if step is None:
            raise NoetlError(f"the playbook has no step `{work.step}`")
        if work.patch is None:
            made = book.plans[work.step] = PlannedStep(book, step, for_step(book.info, step, book.layered), book.image)
            return made
        step = patched(step, work.patch, kinds)
        info = replace(book.info, patched=patched_calls(book.playbook, step, work.patch, kinds) if work.patch else {})
        return PlannedStep(book, step, for_step(info, step, book.layered), book.image)

    def _settle(self) -> None:
        """Discard all plans: the server's settings for executions have changed."""
        self._defaults = dict(self._shared.defaults)
        for book in self._books.values():
            book.settle(self._defaults)

    async def _fetch(self, content: str) -> bytes:
        """Fetch a pinned tree; retry while it is unavailable and the lease is held."""
        while True:
            try:
                return await self._shared.control.playbook(content)
            except (StoreUnavailable, OSError) as error:
                _log.log(log_level(error), "a playbook cannot be fetched now: %s", error)
                await self._shared.clock.sleep(_AGAIN_S)
