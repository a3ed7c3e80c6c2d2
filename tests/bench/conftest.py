"""The systems of the benchmark, forked from a loaded process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest

from tests.preloaded import Command, preloaded

START = 3  # words before the arguments of `python -m noetl`


def fork(words: Sequence[str], *, stderr: IO[bytes], cwd: str, **_: object) -> Command:
    """Start what `python -m noetl …` would start."""
    return preloaded().start_logged(words[START:], Path(cwd), os.environ, stderr.fileno())


@pytest.fixture(scope="module")
def forked() -> Iterator[None]:
    """Fork the processes of a system: how long their start takes is not tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench.system.Popen", fork)
        yield
