"""Mocked tools of a case: mocks, cassettes, real tools, faults and effects.

A fault makes a call fail, whatever the mocks say. Tested in tests/unit/testing/test_cases.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from noetl.engine.state.writes import put
from noetl.model.outcome import Outcome, failed
from noetl.ports import Runner, ToolContext, Tools
from noetl.ports.work import run_tool
from noetl.testing.cases.files.read import Given
from noetl.testing.cases.files.templates import TemplateTroubleError, rendered
from noetl.testing.scripted import DEFAULT_MS, TIE_MS, ScriptedTools, item_of, outcome_of
from noetl.testing.virtual_time import threads

_UNKNOWN: Final = "UNMOCKED"


class Site(Struct, frozen=True, order=True):
    """Origin of a call, equal in every play of the same playbook."""

    playbook: str
    step: str
    task: str
    index: int | str | None = None  # of an item; for a claimed row, its key
    visit: int = 1  # of this item of this task, each with a new idempotency key

    def __str__(self) -> str:
        item = "" if self.index is None else f"[{self.index}]"
        again = f" (visit {self.visit})" if self.visit > 1 else ""
        task = "" if self.task == f"{self.step}_task" else f".{self.task}"
        return f"{self.step}{task}{item}{again}"


class Fault(Struct, frozen=True):
    """Fault at a site: every attempt fails, or the first, perhaps after its effect."""

    error: Any
    once: bool = False
    lost: bool = False  # it takes effect, and the response is lost


class Call(Struct, frozen=True):
    """One call of a tool."""

    site: Site
    kind: str
    key: str  # idempotency key
    attempt: int
    fields: Mapping[str, Any]


class MockedTools(ScriptedTools):
    """Tool kinds of a play."""

    def __init__(
        self,
        given: Given,
        path_of: Callable[[str], Awaitable[tuple[str, str]]],  # execution → path and name of its playbook
        recorded: Mapping[str, Any] | None = None,
        faults: Mapping[Site, Fault] | None = None,
        real: Tools | None = None,
        cursors: Collection[tuple[str, str]] = (),  # playbook and step of loops over claimed rows
    ) -> None:
        super().__init__({})
        self._case = given
        self._path_of = path_of
        self._recorded = recorded or {}
        self._faults = faults or {}
        self._real = real
        self._cursors = cursors
        self._keys: dict[tuple[str, str, str, int | str | None], list[str]] = {}
        self._failed: Counter[Site] = Counter()
        self._done: set[str] = set()  # idempotency keys whose effects were applied
        self.world: dict[str, Any] = msgspec.to_builtins(given.world)
        self.called: list[Call] = []
        self.problems: list[str] = []  # unanswered calls, templates that cannot be rendered

    def runner(self, kind: str) -> Runner | None:
        async def run(fields: Mapping[str, Any], context: ToolContext) -> Outcome:
            return await self._called(kind, fields, context)

        return run

    async def _called(self, kind: str, fields: Mapping[str, Any], context: ToolContext) -> Outcome:
        path, name = await self._path_of(context.execution_id)
        site = self._site(path, context)
        self.called.append(Call(site, kind, context.idempotency_key, context.attempt, fields))
        try:
            outcome = await self._answer(kind, (path, name), site, fields, context)
        except TemplateTroubleError as problem:
            self.problems.append(f"the mock of `{site}`: {problem}")
            outcome = failed("template", str(problem), code=_UNKNOWN)
        except asyncio.CancelledError:
            self.stopped.append(f"{site.step}.{site.task}")
            raise
        if context.confirm is not None:
            await context.confirm(outcome)
        return outcome

    def _site(self, path: str, context: ToolContext) -> Site:
        index: int | str | None = item_of(context.idempotency_key)
        if (path, context.step) in self._cursors:
            index = _row_of(context.idempotency_key, context.task)
        place = (path, context.step, context.task, index)
        seen = self._keys.setdefault(place, [])
        if context.idempotency_key not in seen:
            seen.append(context.idempotency_key)
        return Site(*place, seen.index(context.idempotency_key) + 1)

    async def _answer(
        self, kind: str, playbook: tuple[str, str], site: Site, fields: Mapping[str, Any], context: ToolContext
    ) -> Outcome:
        names = {
            "input": dict(context.input),
            "fields": dict(fields),
            "index": site.index,
            "attempt": context.attempt,
            "world": self.world,
        }
        fault = self._faults.get(site)
        if fault is not None and not (fault.once and self._failed[site]):
            self._failed[site] += 1
            if not fault.lost:
                found = entry_of(self._case.mocks, playbook, site.step, site.task)
                usual = found[1] if found is not None and isinstance(found[1], Mapping) else {}
                return await self._taking({"error": fault.error, "takes": usual.get("takes", DEFAULT_MS)}, fields)
        else:
            fault = None
        outcome = await self._usual(kind, playbook, site, fields, context, names)
        if outcome.status == "ok":
            self._affect(playbook, site, context.idempotency_key, {**names, "result": outcome.result})
        return outcome if fault is None else outcome_of({"error": fault.error}, fields)

    async def _usual(
        self,
        kind: str,
        playbook: tuple[str, str],
        site: Site,
        fields: Mapping[str, Any],
        context: ToolContext,
        names: Mapping[str, Any],
    ) -> Outcome:
        found = entry_of(self._case.mocks, playbook, site.step, site.task)
        given = self._mock(*found, site) if found is not None else self._recording(site)
        if given is None and kind not in self._case.real:
            given = self._without_mock(kind, site)
        if given is None or given.get("real"):
            return await self._really(kind, fields, context)
        return await self._taking(rendered(given, names) if found is not None else given, fields)

    async def _taking(self, given: Mapping[str, Any], fields: Mapping[str, Any]) -> Outcome:
        if given.get("hang"):
            await asyncio.Event().wait()
        await asyncio.sleep((float(given.get("takes", DEFAULT_MS)) + len(self.called) * TIE_MS) / 1000)
        try:
            return outcome_of(given, fields)
        except msgspec.ValidationError as error:
            raise TemplateTroubleError(f"invalid error: {error}") from None

    async def _really(self, kind: str, fields: Mapping[str, Any], context: ToolContext) -> Outcome:
        runner = self._real.runner(kind) if self._real is not None else None
        if runner is None:
            return failed("unknown", f"no tool of kind `{kind}` is available", code=_UNKNOWN)
        with threads():
            return await run_tool(runner, fields, context)

    def _mock(self, key: str, given: Any, site: Site) -> Mapping[str, Any] | None:
        turn = f"{key}|{site.task}"
        if isinstance(given, Mapping) and "items" in given:
            items = given["items"]
            given = items.get(str(site.index), items.get("else"))
            turn = f"{turn}|{site.index}"
        return self._next(turn, given)

    def _recording(self, site: Site) -> Mapping[str, Any] | None:
        item = "" if site.index is None else f"[{site.index}]"
        call = f"{site.playbook}:{site.step}.{site.task}{item}"
        visits = (visit for visit in range(site.visit, 0, -1) if f"{call}#{visit}" in self._recorded)
        name = f"{call}#{next(visits, 1)}"
        return self._next(f"{name}|{site.visit}", self._recorded.get(name))

    def _next(self, turn: str, given: Any) -> Mapping[str, Any] | None:
        if not isinstance(given, list):
            return given  # type: ignore[no-any-return]
        number = self._turns[turn]
        self._turns[turn] += 1
        return given[min(number, len(given) - 1)] if given else None

    def _without_mock(self, kind: str, site: Site) -> Mapping[str, Any]:
        if kind == "noop" or self._case.unmocked == "empty":
            return {}
        said = f"`{site}` ({kind}) was called, but has no mock"
        if said not in self.problems:
            self.problems.append(said)
        return {"error": {"kind": "unknown", "message": said, "code": _UNKNOWN}}

    def _affect(self, playbook: tuple[str, str], site: Site, key: str, names: Mapping[str, Any]) -> None:
        """Apply effects to the world, once per idempotency key."""
        found = entry_of(self._case.effects, playbook, site.step, site.task)
        if found is None or key in self._done:
            return
        self._done.add(key)
        for name, value in rendered(found[1], names).items():
            put(self.world, name, value)


def _row_of(key: str, task: str) -> str | None:
    """Return the row key in an idempotency key; None for the claim itself."""
    rest = key.split(":", 2)[-1]
    at = rest.rfind(f":{task}")
    return rest[:at] if at > 0 else None


def entry_of(table: Mapping[str, Any], playbook: tuple[str, str], step: str, task: str) -> tuple[str, Any] | None:
    """Return the most specific entry for a task."""
    places = [f"{step}.{task}", step]
    keys = [f"{name}:{place}" for place in places for name in playbook] + places
    return next(((key, table[key]) for key in keys if key in table), None)
