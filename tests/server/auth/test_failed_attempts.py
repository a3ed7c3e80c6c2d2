"""Wrong tokens wait, valid ones never do, and waiting answers are few."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from noetl.server.auth.failed_attempts import FailedAttempts
from noetl.server.problems import Refusal
from noetl.settings import ServerSettings
from tests.server.serving import bearer, in_process, secret

pytestmark = pytest.mark.asyncio
TOKEN = ServerSettings(auth="token")


class StoppedClock:
    """A clock whose sleepers wait until the test ends their wait."""

    def __init__(self) -> None:
        self.at = 1_000
        self.slept: list[float] = []
        self.let_go = asyncio.Event()

    def now(self) -> int:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self.let_go.wait()


async def test_each_failure_of_an_address_waits_longer_up_to_a_limit() -> None:
    clock = StoppedClock()
    clock.let_go.set()
    attempts = FailedAttempts(clock)
    for _ in range(8):
        await attempts.delay("192.0.2.1")
    assert clock.slept == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 3.2, 3.2])
    await attempts.delay("192.0.2.2")
    assert clock.slept[-1] == pytest.approx(0.1)
    clock.at += 60_001
    await attempts.delay("192.0.2.1")
    assert clock.slept[-1] == pytest.approx(0.1)


async def test_an_ipv6_network_is_one_address() -> None:
    clock = StoppedClock()
    clock.let_go.set()
    attempts = FailedAttempts(clock)
    for address in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"):
        await attempts.delay(address)
    assert clock.slept == pytest.approx([0.1, 0.2, 0.1])


async def test_few_answers_wait_at_once_of_one_address_and_of_all() -> None:
    clock = StoppedClock()
    attempts = FailedAttempts(clock)

    async def fail(address: str) -> bool:
        try:
            await attempts.delay(address)
        except Refusal as refusal:
            return refusal.headers.get("Connection") != "close"
        return True

    async def fail_often(addresses: list[str]) -> list[bool]:
        tasks = [asyncio.create_task(fail(address)) for address in addresses]
        await asyncio.sleep(0)
        clock.let_go.set()
        found = await asyncio.gather(*tasks)
        clock.let_go.clear()
        return found

    assert sum(await fail_often(["192.0.2.1"] * 100)) == 16
    assert sum(await fail_often(["192.0.2.1"] * 100)) == 16  # they have left
    assert sum(await fail_often([f"192.0.2.{number % 250}" for number in range(1_000)])) == 256


async def test_a_valid_token_does_not_wait_while_wrong_ones_of_its_address_do(tmp_path: Path) -> None:
    viewer = await secret(tmp_path, "viewer")
    clock = StoppedClock()
    async with in_process(tmp_path, TOKEN) as served:
        served.services.gate._failed = FailedAttempts(clock)
        path = "/api/executions"
        wrong = [asyncio.create_task(served.http.get(path, headers=bearer(f"noetl_{n}"))) for n in range(40)]
        while len([task for task in wrong if task.done()]) < 24:  # the others wait, and nothing lets them go
            await asyncio.sleep(0.01)
        assert (await served.http.get(path, headers=bearer(viewer))).status_code == 200
        assert len([task for task in wrong if not task.done()]) == 16
        clock.let_go.set()
        answers = sorted([(await task).status_code for task in wrong])
        assert answers == [401] * 16 + [429] * 24


async def test_wrong_tokens_do_not_displace_valid_ones_from_memory(tmp_path: Path) -> None:
    viewer = await secret(tmp_path, "viewer")
    async with in_process(tmp_path, TOKEN) as served:
        gate, clock = served.services.gate, StoppedClock()
        clock.let_go.set()
        gate._failed = FailedAttempts(clock)
        await gate.holder(viewer, "192.0.2.1")
        known = dict(gate._known)
        assert len(known) == 1
        for number in range(20):
            with pytest.raises(Refusal):
                await gate.holder(f"noetl_{number}", "192.0.2.1")
        assert dict(gate._known) == known
