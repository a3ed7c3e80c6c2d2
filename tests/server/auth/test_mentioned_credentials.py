"""Which credentials a playbook mentions, and what a worker gets by its lease."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.dsl.tree.pin import pinned
from noetl.server.auth.mentioned_credentials import mentioned_in, mentioned_in_patch
from noetl.testing.scenario import read_playbook
from tests.server.serving import Served, in_process, playbook

TASKS = """
  - step: plain
    tool: {kind: postgres, auth: in_auth, command: select 1}
  - step: alias
    tool: {kind: postgres, credential: in_credential, command: select 1}
  - step: whole
    tool: {kind: http, url: "http://a", auth: {credential: in_map}}
  - step: moved
    tool: {kind: transfer, source: {kind: postgres, auth: in_source, query: select 1}, target: {kind: postgres, auth: in_target, table: t}}
  - step: rows
    loop: {cursor: {kind: postgres, auth: in_cursor, claim: select 1}, iterator: row}
    tool: {kind: noop}
  - step: piped
    tool:
      - one: {kind: noop}
      - two: {kind: http, url: "http://a", auth: in_pipeline}
"""
KEYCHAIN = [
    {"name": "declared"},
    {"name": "other", "credential": "behind"},
    {"name": "mapped", "kind": "secret_manager", "map": {"a": "short", "b": "projects/p/secrets/long/versions/1"}},
]
NAMED = ("in_auth", "in_credential", "in_map", "in_source", "in_target", "in_cursor", "in_pipeline")


def canonical(text: str) -> bytes:
    return pinned(read_playbook(text))[0]


def test_names_of_tasks_cursors_places_and_the_keychain() -> None:
    found = mentioned_in(canonical(playbook(TASKS, keychain=KEYCHAIN)))
    for name in (*NAMED, "declared", "behind", "short", "long"):
        assert name in found, name
    for name in ("select 1", "postgres", "plain", "http://a", "t", "", "IN_AUTH", "in_auth2", "test/play"):
        assert name not in found, name


@pytest.mark.parametrize(
    ("auth", "asked", "is_mentioned"),
    [
        ("pg_{{ workload.env }}", "pg_prod", True),
        ("pg_{{ workload.env }}", "my_prod", False),
        ("pg_{{ workload.env }}_ro", "pg_prod_ro", True),
        ("pg_{{ workload.env }}_ro", "pg_prod", False),
        ("a.b_{{ workload.env }}", "axb_prod", False),
        ("{{ workload.db }}", "anything", True),
        ("{% if workload.a %}one{% else %}two{% endif %}", "one", True),
    ],
)
def test_a_template_mentions_what_it_can_produce(auth: str, asked: str, is_mentioned: bool) -> None:
    task = msgspec.json.encode({"kind": "postgres", "auth": auth, "command": "select 1"}).decode()
    text = playbook(f"  - step: a\n    tool: {task}\n", workload={"env": "", "db": "", "a": 1})
    assert (asked in mentioned_in(canonical(text))) is is_mentioned


def test_a_patch_mentions_its_auth() -> None:
    found = mentioned_in_patch({"task": "a", "values": {"spec.auth": "new", "spec.url": "old"}})
    assert "new" in found
    assert "old" not in found
    assert "new" not in mentioned_in_patch(None)


WITH_AUTH = playbook('  - step: a\n    tool: {kind: http, url: "http://127.0.0.1:9", auth: mine}\n')


async def asked(served: Served, name: str, held: list[Any], status: int) -> Any:
    return await served.json("POST", "/api/worker/credential", {"name": name, "worker": "w", "work": held}, status)


@pytest.mark.asyncio
@pytest.mark.parametrize("is_known", [True, False])
async def test_a_worker_gets_only_what_the_playbook_of_its_lease_names(tmp_path: Path, is_known: bool) -> None:
    async with in_process(tmp_path) as served:
        for name in ("mine", "others"):
            await served.json("PUT", f"/api/credentials/{name}", {"data": {"token": f"{name}-secret"}})
        await served.start(WITH_AUTH)
        await served.json("POST", "/api/worker/hello", {"worker": "w", "acks": False})
        lease = (await served.json("POST", "/api/worker/claim", {"id": "c", "worker": "w"}))["leases"][0]
        held = [lease["work"]["work_id"], lease["epoch"]]
        if not is_known:  # as after a reconnection to another server
            served.services.registry.connection("w").grants.clear()
        assert (await asked(served, "mine", held, 200))["data"] == {"token": "mine-secret"}
        told = await asked(served, "others", held, 403)
        assert told["type"] == "about:blank#not-mentioned"
        assert "others-secret" not in str(told)
        await asked(served, "no-such-thing", held, 403)
        put = {"work": held, "worker": "w", "key": f"{held[0].partition(':')[0]}:k", "address": "http://127.0.0.1:9"}
        await served.json("POST", "/api/worker/outbox", {**put, "auth": "others"}, 403)
        await served.json("POST", "/api/worker/outbox", {**put, "auth": "mine"}, 200)
