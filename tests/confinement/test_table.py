"""The table of the page about confinement is what a worker of this machine does."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl.worker.processes import sandbox
from tests.confinement.table import HEAD, KINDS, PAGE, Trial, missing, written


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(mode, marks=pytest.mark.skipif(missing(mode) is not None, reason=str(missing(mode))))
        for mode in sandbox.MODES
    ],
)
@pytest.mark.asyncio
async def test_the_page_says_what_each_kind_can_do(mode: str, tmp_path: Path) -> None:
    seen = await Trial(mode, tmp_path).rows()
    assert seen == written(mode), "run `python -m tests.confinement.table` and read what changed"


def test_the_page_describes_every_sandbox() -> None:
    assert HEAD in PAGE.read_text()
    assert [len(written(mode)) for mode in sandbox.MODES] == [len(KINDS)] * len(sandbox.MODES)
