"""Hostile playbooks over HTTP: refused at a deadline, while others are served."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from noetl.settings import ServerSettings
from tests.corpus.hostile import DOCUMENTS
from tests.server.serving import ONE, in_process, playbook

pytestmark = pytest.mark.asyncio
PATIENT = ServerSettings(check_s=600)


async def test_a_check_that_takes_too_long_is_refused_and_the_next_one_served(tmp_path: Path) -> None:
    async with in_process(tmp_path, ServerSettings(check_s=0.05)) as served:
        hostile = {"content": DOCUMENTS["unknown arcs"](1_000_000)}
        told = await served.json("POST", "/api/catalog", hostile, 422)
        assert told["type"].endswith("#too-complex")
        assert "takes more than 0.05 s of processor time" in told["detail"]
        assert "NOETL_CHECK_SECONDS" in told["fix"]
        assert (await served.json("POST", "/api/execute", hostile, 422))["type"] == told["type"]
        assert (await served.json("GET", "/api/catalog"))["playbooks"] == []


async def test_small_playbooks_are_registered_while_large_ones_wait(tmp_path: Path) -> None:
    async with in_process(tmp_path, PATIENT) as served:
        order: list[str] = []

        async def register(name: str, content: str, status: int) -> None:
            await served.json("POST", "/api/catalog", {"content": content}, status)
            order.append(name)

        large = DOCUMENTS["unknown arcs"](300_000)
        tasks = [asyncio.create_task(register("large", large, 422)) for _ in range(4)]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(register("small", ONE, 201)))
        await asyncio.gather(*tasks)
        assert order.index("small") <= 2, order  # two were being checked; the others were overtaken


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"$ref": "http://127.0.0.1:1/a.json"}, "leads out of the schema"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "leads out of the schema"),
        ({"allOf": [{"$dynamicRef": "other.json#a"}]}, "leads out of the schema"),
        ({"properties": {"a": {"pattern": "(?=a)a"}}}, "The pattern cannot be used"),
        ({"patternProperties": {"(a)\\1": {}}}, "The pattern cannot be used"),
        ({"unevaluatedProperties": False}, "is not checked"),
        ({"properties": {f"a{n}": {} for n in range(3_000)}}, "more than 2,000"),
    ],
)
async def test_a_schema_that_cannot_be_checked_safely_is_refused(tmp_path: Path, schema: Any, said: str) -> None:
    text = playbook(
        "  - step: a\n    tool: {kind: noop}\n", workload={"a": ""}, executor={"spec": {"workload_schema": schema}}
    )
    async with in_process(tmp_path, PATIENT) as served:
        told = await served.json("POST", "/api/catalog", {"content": text}, 422)
        assert [one["code"] for one in told["errors"] if said in one["message"]] == ["NOE131"]
