"""Playbooks take turns on every store: a long queue of one delays no other."""

from __future__ import annotations

import pytest

from noetl.clock import SteadyClock
from noetl.model.messages import Start
from noetl.server.control_plane import LocalControlPlane
from tests.conformance.conftest import Store
from tests.unit.server.system import chain, done, register, report_on

pytestmark = pytest.mark.asyncio


async def start(control: LocalControlPlane, path: str, playbook: str, *names: str) -> None:
    for name in names:
        await control.submit(name, Start(f"start-{name}", path, playbook))


async def test_one_execution_goes_next_beside_a_long_queue(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        noisy, quiet = [await register(store, chain(1), path) for path in ("team/noisy", "team/quiet")]
        await start(control, "team/noisy", noisy, *map(str, range(100, 160)))
        for _ in range(10):
            await control.claim("w", [""], 1, 0)
        await start(control, "team/quiet", quiet, "900")
        next_ones = await control.claim("w", [""], 2, 0)
        assert "900" in [lease.work.execution_id for lease in next_ones]
        line = await store.line("159")
        assert list(line.work.values()) == [48]  # of 60, twelve less one were taken


async def test_an_execution_that_has_begun_ends_before_new_ones_begin(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        playbook = await register(store, chain(3), "team/long")
        await start(control, "team/long", playbook, *map(str, range(100, 150)))
        served, lease = [], (await control.claim("w", [""], 1, 0))[0]
        for _ in range(8):
            served.append((lease.work.execution_id, lease.work.step))
            [lease] = await report_on(control, lease.work.execution_id, done(lease), want=1)
        ended = [name for name, step in served if step == "s2"]
        begun = {name for name, step in served if step == "s0"}
        assert len(ended) >= 1
        assert len(begun) <= 4  # not all of the eight turns went to new executions


async def test_a_weight_gives_a_playbook_more_turns(store: Store) -> None:
    heavy = chain(1).replace("workflow:", "executor: {spec: {weight: 3}}\nworkflow:")
    async with LocalControlPlane(store, SteadyClock()) as control:
        light, weighty = await register(store, chain(1), "team/light"), await register(store, heavy, "team/heavy")
        await start(control, "team/light", light, *map(str, range(100, 120)))
        await start(control, "team/heavy", weighty, *map(str, range(200, 220)))
        served = [lease.work.execution_id[0] for lease in await control.claim("w", [""], 16, 0)]
        assert served.count("2") == 12
