"""Exporters of several servers send each span once, and no more than fit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from noetl.dsl.tree.pin import unpinned
from noetl.engine.plan.plan import Plan, plan
from noetl.model.errors import Unreachable
from noetl.observe.traces import exporter
from noetl.observe.traces.exporter import Durations, TraceExporter
from noetl.observe.traces.spans import Span, TraceFold
from noetl.ports import Commit
from noetl.settings import TracingSettings
from tests.unit.worker.system import System, system

pytestmark = pytest.mark.asyncio
FLOW = """
- step: one
  tool: {kind: noop, result: 1}
  next: [{step: two, when: "{{ one == 1 }}"}]
- step: two
  loop: {in: [1, 2], iterator: n}
  tool: {kind: noop}
"""


class Sent:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.is_down = False

    async def send(self, spans: Sequence[Span]) -> None:
        if self.is_down:
            raise Unreachable("It is down.")
        self.spans += spans


async def history(run: System, workflow: str = FLOW) -> tuple[str, list[Commit]]:
    """Run a playbook; return its commits."""
    seen: list[Commit] = []
    run.control.sequencer.hooks.register(commits=seen.extend)
    started = await run.start(workflow)
    await run.ended(started)
    await asyncio.sleep(0)
    return started, [commit for commit in seen if commit.execution_id == started]


async def planned(run: System, commits: Sequence[Commit]) -> Plan:
    data = await run.store.canonical(str(commits[0].projection["playbook"]))
    assert data is not None
    return plan(unpinned(data), "hash")


def exporting(run: System, made: Plan, sent: Sent, **more: Any) -> TraceExporter:
    async def plan_of(_: str) -> Plan:
        return made

    return TraceExporter(run.store, plan_of, sent, TracingSettings(endpoint="http://x", **{"sample_rate": 1, **more}))


async def flush(*exporters: TraceExporter) -> None:
    """Run exporters until they have sent what they have."""
    for one in exporters:
        running = asyncio.create_task(one.run())
        await asyncio.sleep(0)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def whole(made: Plan, commits: Sequence[Commit], started: str) -> list[str]:
    fold = TraceFold(started, made, {"sample_rate": 1})
    return [span.span_id for commit in commits for event in commit.events for span in fold.add(event)]


async def test_servers_that_commit_in_turns_send_each_span_once() -> None:
    async with system() as run:
        started, commits = await history(run)
        made, sent = await planned(run, commits), Sent()
        servers = [exporting(run, made, sent), exporting(run, made, sent)]
        assert len(commits) > 2
        for number, commit in enumerate(commits):
            servers[number % 2].committed([commit])
            await flush(servers[number % 2])
        assert sorted(span.span_id for span in sent.spans) == sorted(await whole(made, commits, started))


async def test_an_execution_that_is_not_sampled_costs_nothing_until_it_ends() -> None:
    async with system() as run:
        _, commits = await history(run)
        made, sent = await planned(run, commits), Sent()
        server = exporting(run, made, sent, sample_rate=0)
        for commit in commits:
            server.committed([commit])
            await flush(server)
        assert sent.spans == []


async def test_a_slow_execution_is_made_of_the_log() -> None:
    async with system() as run:
        started, commits = await history(run)
        made, sent = await planned(run, commits), Sent()
        server = exporting(run, made, sent, sample_rate=0)
        [last] = [commit for commit in commits if "ended_at" in commit.projection]
        for number in range(200):
            row = {**last.projection, "ended_at": last.projection["started_at"] + number % 7}
            server.committed([replace(last, execution_id=f"other-{number}", projection=row)])
        await flush(server)
        slow = replace(last, projection={**last.projection, "ended_at": last.projection["started_at"] + 9_000})
        server.committed([*commits[:-1], slow])
        await flush(server)
        found = {span.span_id for span in sent.spans if span.attributes["execution_id"] == started}
        assert found == set(await whole(made, commits, started))


async def test_more_than_the_queue_holds_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "MOST_WAITING", 1)
    async with system() as run:
        _, commits = await history(run)
        server = exporting(run, await planned(run, commits), Sent())
        server.committed(commits)
        assert server.dropped == len(commits) - 1


async def test_what_cannot_be_sent_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async with system() as run:
        _, commits = await history(run)
        sent = Sent()
        server = exporting(run, await planned(run, commits), sent)
        sent.is_down = True
        for commit in commits:
            server.committed([commit])
            await flush(server)
        assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
            "It is down. Trying again with the next spans."
        ]


async def test_slow_is_what_takes_longer_than_99_of_100() -> None:
    known = Durations()
    assert not any(known.is_slow("a", float(number % 100)) for number in range(100))
    assert known.is_slow("a", 100.0)
    assert not known.is_slow("a", 50.0)
    assert not known.is_slow("b", 10_000.0)  # nothing is known of it
    assert not any(known.is_slow("c", 7.0) for _ in range(1_000))  # as slow as the others is not slow
    assert sum(known.is_slow("c", 1_000.0 + number) for number in range(100)) == 10  # then one in a hundred
