"""The watchdog ends what does not end by itself: evaluations, and the process."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from noetl.expr import Budget, BudgetExceeded, compile_template
from noetl.wiring.watchdog import watched

ENDLESS = "{% for o in range(9999) %}{% for k in range(9999) %}{{ k }}{% endfor %}{% endfor %}"


@pytest.mark.asyncio
async def test_an_evaluation_ends_at_its_deadline(caplog: pytest.LogCaptureFixture) -> None:
    budget = Budget(10**12, 10**12)
    async with watched(evaluation_s=0.5):
        with pytest.raises(BudgetExceeded):
            compile_template(ENDLESS).evaluate({}, budget=budget)
    assert "was ended" in caplog.text
    assert compile_template("{{ 1 + 1 }}").evaluate({}) == 2


def run(body: str) -> subprocess.CompletedProcess[str]:
    code = f"""
        import asyncio, time
        from noetl.wiring.watchdog import watched
        async def main():
            async with watched(stuck_s=2):
                {body}
        asyncio.run(main())
        print("done")
    """
    return subprocess.run(
        [sys.executable, "-c", dedent(code)], capture_output=True, text=True, timeout=120, check=False
    )


def test_a_process_that_is_stuck_in_a_library_ends_itself() -> None:
    ended = run("(3 ** 5_000_000) ** 40")  # one call of C code, which holds the interpreter's lock for minutes
    assert ended.returncode == -signal.SIGPROF
    assert "in main" in ended.stderr


@pytest.mark.parametrize(
    "body", ["time.sleep(3)", "await asyncio.sleep(3)", "[await asyncio.sleep(0) for _ in range(300_000)]"]
)
def test_a_process_that_waits_or_works_goes_on(body: str) -> None:
    ended = run(body)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_it_leaves_nothing_behind() -> None:
    asyncio.run(_enter_and_leave())
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


async def _enter_and_leave() -> None:
    async with watched():
        await asyncio.sleep(0)
