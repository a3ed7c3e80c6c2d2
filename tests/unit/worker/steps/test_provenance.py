"""What a step-run records of what ran it."""

from __future__ import annotations

from pathlib import Path
from platform import python_version

import pytest
from msgspec.structs import replace

from noetl import __version__
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.tools import kinds
from noetl.worker.steps.provenance import runtime_of
from tests.server.serving import HEAD, in_process

STEPS = HEAD + (
    "workflow:\n  - step: one\n    tool:\n"
    "      - made: {kind: noop, result: 1}\n"
    "      - film: {kind: container, image: 'ffmpeg:7'}\n"
    "      - other: {kind: container, image: '{{ workload.image }}'}\n"
)
SHORT = HEAD.replace("NAME", "short") + "workflow:\n  - {step: one, tool: {kind: noop}}\n"


def test_versions_of_kinds_and_images_are_those_of_the_step() -> None:
    (step,) = normalize(parse(STEPS)).workflow
    found = runtime_of(step, kinds(), "registry/noetl:1")
    assert found == {
        "noetl": __version__, "python": python_version(), "tools": {"noop": __version__, "container": __version__},
        "image": "registry/noetl:1", "images": ["ffmpeg:7"],
    }  # fmt: skip
    packaged = {**kinds(), "noop": replace(kinds()["noop"], version="4.2")}
    assert runtime_of(step, packaged, "")["tools"] == {"noop": "4.2", "container": __version__}
    assert "image" not in runtime_of(step, packaged, "")


@pytest.mark.asyncio
async def test_a_worker_records_them_in_the_log(tmp_path: Path) -> None:
    async with in_process(tmp_path, image="here:1") as served, served.embedded.run_worker(""):
        found = await served.start(SHORT)
        await served.until(found, "completed")
        (started,) = (one for one in await served.services.store.read(found) if one.event_type == "step.started")
        assert started.payload["runtime"] == {
            "noetl": __version__, "python": python_version(), "tools": {"noop": __version__}, "image": "here:1",
        }  # fmt: skip
