"""Every example has the same events on a cluster as in one process."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from contextlib import aclosing
from pathlib import Path
from shutil import copytree
from typing import Any

import psycopg
import pytest

from noetl import Client
from noetl.model.events import Event
from noetl.wire.answers import Execution
from tests.acceptance.run import Ran
from tests.acceptance.running import Folder, summary, until
from tests.cluster.cluster import Cluster
from tests.docs.backend import backend
from tests.docs.pages import ROOT

pytestmark = pytest.mark.asyncio
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.yaml") if ".test." not in path.name)
GIVEN = {"poll_job": ["pause_s=0.05"], "quantum_sweep": ["queue_s=0.01"], "region_report": ["region=west"]}
CALLS = {
    "weather_to_duckdb": "api={}",
    "pagination": "api={}",
    "fan_out_join": "api={}",
    "poll_job": "api={}",
    "clean_up": "api={}",
    "orders_io_form": "api={}/fresh",
    "cursor_queue": "gateway={}/send",
}
SIGNALS = {
    "approval": ("delete_records", {"approved": True, "by": "ada"}),
    "release": ("approve", {"approved": True}),
}
# How a loop is cut into pieces, and when lines are flushed, follows from who has room and when: not from the playbook.
PIECES = frozenset({"loop.iteration.scheduled", "loop.iteration.started", "loop.progress", "task.logged"})


def shape(events: list[Event]) -> dict[tuple[str, int | None], list[tuple[Any, ...]]]:
    """What happened to each step-run and to each item, in its order."""
    found: dict[tuple[str, int | None], list[tuple[Any, ...]]] = defaultdict(list)
    for event in events:
        if event.event_type not in PIECES and event.step_run_id is not None:
            entity = event.entity_id if event.entity_type in ("task", "step") else event.entity_type
            found[event.step_run_id, event.iteration].append((event.event_type, entity, event.attempt, event.status))
    return dict(found)


def prepare(name: str, address: str) -> None:
    """Make the tables that an example works on."""
    with psycopg.connect(address, autocommit=True) as kept:
        kept.execute("DROP TABLE IF EXISTS orders, outbox")
        if name == "cursor_queue":
            kept.execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY, recipient TEXT, body TEXT, state TEXT)")
            rows = [(number, f"r{number}", "hi", "waiting") for number in range(1, 8)]
            kept.cursor().executemany("INSERT INTO outbox VALUES (%s, %s, %s, %s)", rows)


@pytest.fixture(scope="module")
def stocked(system: Cluster) -> Cluster:
    """The cluster with every example, and the credentials that they name."""

    async def stock() -> None:
        async with Client(system.servers) as client:
            await client.put_credential("pg_main", {"dsn": system.database})
            await client.put_credential("gateway_token", {"token": "a-token-of-some-length"})
            for each in EXAMPLES:
                await client.register((ROOT / "examples" / f"{each}.yaml").read_text())

    asyncio.run(stock())
    return system


async def on_cluster(system: Cluster, name: str, values: list[str]) -> tuple[Execution, list[Event]]:
    async with Client(system.servers) as client, Client(system.servers[::-1]) as other:
        payload = {key: _value(text) for key, _, text in (value.partition("=") for value in values)}
        started = (await client.execute(f"examples/{name}", payload)).execution_id
        async with aclosing(other.follow(started)) as events:
            async for event in events:
                if event.event_type == "step.suspended" and name in SIGNALS:
                    await other.signal(started, *SIGNALS[name])
        return await client.status(started), await other.events(started)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def in_process(folder: Folder, name: str, values: list[str], address: str) -> tuple[dict[str, Any], list[Event]]:
    options = [word for value in values for word in ("--set", value)]
    given = {"NOETL_CREDENTIAL_PG_MAIN": address, "NOETL_CREDENTIAL_GATEWAY_TOKEN": "a-token-of-some-length"}
    if name in SIGNALS:
        signal, data = SIGNALS[name]
        with folder.started("run", f"examples/{name}.yaml", "--json") as process:
            until(lambda: bool(folder.ids()) and "step.suspended" in _types(folder), "the question")
            assert folder.call("signal", "last", signal, json.dumps(data)).code == 0
            out, err = process.communicate(timeout=60)
        ran = Ran(process.returncode, out.decode(), err.decode())
    else:
        ran = folder.call("run", f"examples/{name}.yaml", "--json", *options, **given)
    found = summary(ran)
    return found.data, [Event(**{key: row[key] for key in Event.__struct_fields__}) for row in folder.events(found.id)]


def _types(folder: Folder) -> set[str]:
    return {event["event_type"] for event in folder.events()}


@pytest.mark.parametrize("name", EXAMPLES)
async def test_an_example_does_on_the_cluster_what_it_does_here(stocked: Cluster, name: str, tmp_path: Path) -> None:
    copytree(ROOT / "examples", tmp_path / "examples")
    with backend() as here:
        values = [*GIVEN.get(name, []), *([CALLS[name].format(here.url)] if name in CALLS else [])]
        prepare(name, stocked.database)
        local, mine = await asyncio.to_thread(in_process, Folder(tmp_path), name, values, stocked.database)
    with backend() as there:
        values = [*GIVEN.get(name, []), *([CALLS[name].format(there.url)] if name in CALLS else [])]
        prepare(name, stocked.database)
        ended, theirs = await on_cluster(stocked, name, values)
    assert ended.status == local["status"]
    assert shape(theirs) == shape(mine)
    assert "report.late" not in {event.event_type for event in theirs}
