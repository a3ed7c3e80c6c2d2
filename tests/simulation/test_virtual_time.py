"""Tests pretended time: order, jumps, threads, and being stuck."""

from __future__ import annotations

import asyncio
import time

import pytest

from noetl.testing.virtual_time import BEGIN, StuckError, VirtualClock, run, threads


def test_sleeps_end_in_their_order_and_take_no_time() -> None:
    async def main() -> list[tuple[str, int]]:
        clock, woken = VirtualClock(), []

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append((name, clock.now() - BEGIN))

        await asyncio.gather(sleeper("late", 86_400), sleeper("early", 1), sleeper("middle", 3_600))
        return woken

    assert run(main) == [("early", 1_000), ("middle", 3_600_000), ("late", 86_400_000)]


def test_decades_pass_too() -> None:
    async def main() -> float:
        for _ in range(3):
            await asyncio.sleep(10 * 365 * 86_400.123)
        return asyncio.get_running_loop().time()

    assert run(main) == pytest.approx(30 * 365 * 86_400.123)


def test_time_outs_are_in_pretended_time() -> None:
    async def main() -> None:
        async with asyncio.timeout(1_000):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run(main)


def test_time_waits_for_threads() -> None:
    async def main() -> int:
        clock = VirtualClock()
        ticking = asyncio.create_task(clock.sleep(5))
        with threads():
            await asyncio.to_thread(time.sleep, 0.01)
        before = clock.now() - BEGIN
        await ticking
        return before

    assert run(main) == 0


def test_the_clock_can_jump() -> None:
    async def main() -> int:
        clock = VirtualClock()
        clock.jump(-500)
        await clock.sleep(1)
        return clock.now() - BEGIN

    assert run(main) == 500


def test_what_can_never_go_on_is_told() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(StuckError):
        run(main)
