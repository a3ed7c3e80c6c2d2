"""Subscriptions over HTTP: made, polled, paused, tested; poisoned messages."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from noetl.server.auth.vault import new_key
from noetl.server.operations.triggers import pause_subscriptions
from noetl.settings import HttpSettings, ServerSettings
from tests.databases import fresh_database
from tests.server.serving import PATIENCE_S, Served, bearer, in_process, playbook, secret
from tests.tools.web import Web

pytestmark = pytest.mark.asyncio
STRICT = playbook(
    "  - step: one\n    tool: {kind: noop}\n",
    "orders",
    workload={"n": 0},
    executor={"spec": {"workload_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}},
)
SERVER = ServerSettings(key=new_key(), http=HttpSettings(delivery_bytes=10_000))
HTTP: dict[str, Any] = {
    "name": "s", "path": "test/orders", "source": "http", "url": "https://example.com/orders", "id": "{{ item.id }}",
    "paused": True,
}  # fmt: skip
PAYLOAD = {"n": "{{ message.data.n }}"}


async def until(check: Callable[[], Any]) -> Any:
    """Wait until a check gives something."""
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while not (found := await check()):
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(0.05)
    return found


async def payloads(served: Served, count: int) -> list[Any]:
    """Wait for executions, and return their payloads, oldest first."""

    async def check() -> Any:
        rows = (await served.json("GET", "/api/executions"))["executions"]
        return rows if len(rows) >= count else None

    rows = list(reversed(await until(check)))
    firsts = [(await served.services.store.read(row["execution_id"], 0, 1))[0] for row in rows]
    return [first.payload["payload"] for first in firsts]


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(text)
    os.utime(path, (1_700_000_000, 1_700_000_000))


@asynccontextmanager
async def dropping(tmp_path: Path, **fields: Any) -> AsyncIterator[tuple[Served, Path]]:
    folder = tmp_path / "drop"
    folder.mkdir()
    async with in_process(tmp_path, SERVER, subscription_folders=(str(folder),)) as served:
        await served.register(STRICT)
        body = {"name": "s", "path": "test/orders", "source": "folder", "folder": str(folder), "every": 1, **fields}
        await served.json("POST", "/api/subscriptions", body, status=201)
        yield served, folder


async def test_a_subscription_is_made_listed_shown_paused_and_deleted(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        await served.register(STRICT)
        row = await served.json("POST", "/api/subscriptions", HTTP, status=201)
        assert (row["subscription_id"], row["reads"], row["paused"]) == ("s", HTTP["url"], True)
        assert (row["spec"]["url"], row["spec"]["id"]) == (HTTP["url"], "{{ item.id }}")
        assert await served.json("GET", "/api/subscriptions/s") == row
        page = await served.json("GET", "/api/subscriptions?limit=1")
        assert (page["subscriptions"], page["next"]) == ([row], "s")
        assert (await served.json("GET", "/api/subscriptions?path=other"))["subscriptions"] == []
        assert (
            "There is a subscription" in (await served.json("POST", "/api/subscriptions", HTTP, status=409))["detail"]
        )
        assert not (await served.json("POST", "/api/subscriptions/s/resume"))["paused"]
        assert (await served.json("POST", "/api/subscriptions/s/pause"))["paused"]
        assert await served.json("DELETE", "/api/subscriptions/s") == {"removed": 1}
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/test")):
            await served.json(method, f"/api/subscriptions/s{path}", {}, status=404)


@pytest.mark.parametrize(
    ("fields", "status", "where"),
    [
        ({"source": "queue"}, 422, "$.source"),
        ({"id": ""}, 422, "$.id"),
        ({"table": "x"}, 422, "$.table"),
        ({"payload": {"n": "{{ workload.n }}"}}, 422, "$.payload.n"),
        ({"every": "soon"}, 422, "$.every"),
        ({"path": "test/none"}, 404, None),
        ({"version": 9}, 404, None),
    ],
)
async def test_a_bad_subscription_is_refused(tmp_path: Path, fields: dict[str, Any], status: int, where: Any) -> None:
    async with in_process(tmp_path, SERVER) as served:
        await served.register(STRICT)
        found = await served.json("POST", "/api/subscriptions", {**HTTP, **fields}, status=status)
        assert found.get("where") == where
        assert found["fix"]


async def test_files_start_executions_and_poisoned_ones_are_dead_letters(tmp_path: Path) -> None:
    async with dropping(tmp_path, payload=PAYLOAD) as (served, folder):
        put(folder, "a.json", '{"n": 1}')
        put(folder, "b.json", "{")
        put(folder, "c.json", '{"n": "x"}')
        put(folder, "d.json", '{"m": 1}')
        put(folder, "e.json", '{"n": 2}')
        assert await payloads(served, 2) == [{"n": 1}, {"n": 2}]

        async def settled() -> Any:
            row = await served.json("GET", "/api/subscriptions/s")
            return row if row["received"] + row["poisoned"] == 5 and row["polled_at"] else None

        row = await until(settled)
        assert (row["received"], row["poisoned"], row["lag"], row["error"]) == (2, 3, 0, "")
        assert row["last_message"].startswith("e.json:")
        letters = (await served.json("GET", "/api/dlq?kind=subscription&step=s"))["letters"]
        reasons = {one["run_id"].split(":")[1]: one["last_error"] for one in letters}
        assert "not JSON" in reasons["b.json"]
        assert "integer" in reasons["c.json"]
        assert "`m`" in reasons["d.json"] or "n" in reasons["d.json"]
        shown = await served.json("GET", f"/api/dlq/{letters[0]['message_id']}")
        assert (shown["path"], shown["reason"], shown["status"]) == ("test/orders", "poison_message", "pending")
        assert shown["payload"]["file"]["name"] in reasons


async def test_a_dead_letter_is_replayed_with_the_templates_of_today(tmp_path: Path) -> None:
    async with dropping(tmp_path, payload=PAYLOAD) as (served, folder):
        put(folder, "a.json", '{"m": 7}')

        async def found() -> Any:
            return (await served.json("GET", "/api/dlq"))["letters"]

        [letter] = await until(found)
        where = f"/api/dlq/{letter['message_id']}"
        again = await served.json("POST", f"{where}/replay", {}, status=400)
        assert "would start nothing again" in again["detail"]
        unfit = await served.json("POST", f"{where}/replay", {"patch": {"n": 1}}, status=422)
        assert ("has no `n`" in unfit["detail"], "`data.id`" in unfit["fix"]) == (True, True)
        await served.json("POST", f"{where}/replay", {"patch": {"data" + ".a" * 1_000: 1}}, status=422)
        trigger = await served.services.triggers.trigger("subscription", "s")
        assert trigger is not None
        from msgspec.structs import replace

        spec = {**trigger.spec, "payload": {"n": "{{ message.data.m }}"}}
        await served.services.triggers.save(replace(trigger, spec=spec))
        dry = await served.json("POST", f"{where}/replay", {"dry_run": True})
        assert (dry["count"], dry["preview"][0]["payload"]["data"]) == (1, {"m": 7})
        assert (await served.json("POST", f"{where}/replay", {}))["count"] == 1
        assert await payloads(served, 1) == [{"n": 7}]
        [row] = (await served.json("GET", "/api/executions"))["executions"]
        assert row["execution_id"] == letter["execution_id"]
        assert (await served.json("GET", where))["status"] == "replayed"
        await served.json("POST", f"{where}/replay", {}, status=409)
        put(folder, "b.json", "[")
        [other] = await until(found)
        hopeless = await served.json("POST", f"/api/dlq/{other['message_id']}/replay", {}, status=400)
        assert "Discard it, or patch its whole `data`." in hopeless["detail"]
        await served.json("POST", "/api/dlq/discard", {"kind": "subscription", "reason": "old"})
        shown = await served.json("GET", f"/api/dlq/{other['message_id']}")
        assert (shown["status"], shown["note"]) == ("discarded", "old")
        acts = [one.action for one in await served.services.team.audited()]
        assert {"dlq.replay", "dlq.discard"} <= set(acts)


async def test_a_dead_letter_is_replayed_with_a_patch_of_its_data(tmp_path: Path) -> None:
    async with dropping(tmp_path, payload=PAYLOAD) as (served, folder):
        put(folder, "a.json", '{"n": "x", "m": 1}')
        put(folder, "b.json", "[")

        async def found() -> Any:
            letters = (await served.json("GET", "/api/dlq"))["letters"]
            return letters if len(letters) == 2 else None

        letters = {one["run_id"].split(":")[1]: one["message_id"] for one in await until(found)}
        for name, patch in (("a.json", {"data.n": 5}), ("b.json", {"data": {"n": 6}})):
            where = f"/api/dlq/{letters[name]}/replay"
            dry = await served.json("POST", where, {"patch": patch, "dry_run": True})
            assert dry["preview"][0]["payload"]["data"]["n"] in (5, 6)
            assert (await served.json("POST", where, {"patch": patch}))["count"] == 1
        assert sorted(one["n"] for one in await payloads(served, 2)) == [5, 6]


async def test_items_over_http_start_executions_once_and_a_lost_site_comes_back(tmp_path: Path) -> None:
    web = Web()
    try:
        async with in_process(tmp_path, SERVER) as served:
            await served.register(STRICT)
            await served.json("PUT", "/api/credentials/api", {"kind": "bearer", "data": {"token": "t0ken-of-the-site"}})
            fields = {"url": f"{web.url}/status/503", "auth": "api", "every": 1, "payload": PAYLOAD, "paused": False}
            fields |= {"items": "{{ body.orders }}", "cursor": "{{ body.next }}", "params": {"after": "{{ cursor }}"}}
            await served.json("POST", "/api/subscriptions", {**HTTP, **fields}, status=201)

            async def failing() -> Any:
                return (await served.json("GET", "/api/subscriptions/s"))["error"]

            assert "503" in await until(failing)
            web.pages["/orders"] = {"orders": [{"id": 1, "n": 1}, {"id": 2, "n": 2}], "next": "p2"}
            trigger = await served.services.triggers.trigger("subscription", "s")
            assert trigger is not None
            from msgspec.structs import replace

            await served.services.triggers.save(replace(trigger, spec={**trigger.spec, "url": f"{web.url}/orders"}))
            assert await payloads(served, 2) == [{"n": 1}, {"n": 2}]

            async def moved() -> Any:
                return any("after=p2" in one.path for one in list(web.asked))

            await until(moved)
            row = await served.json("GET", "/api/subscriptions/s")
            assert (row["position"], row["received"], row["error"]) == ({"cursor": "p2"}, 2, "")
            assert web.asked[-1].headers["authorization"] == "Bearer t0ken-of-the-site"
            tested = await served.json("POST", "/api/subscriptions/s/test")
            assert tested == {"ok": True, "messages": [], "lag": 0, "error": ""}
    finally:
        web.close()


async def test_rows_and_notifications_of_postgresql_start_executions(tmp_path: Path) -> None:
    address = fresh_database("subscribed")
    async with (
        await psycopg.AsyncConnection.connect(address, autocommit=True) as connection,
        in_process(tmp_path, SERVER) as served,
    ):
        await connection.execute("DROP TABLE IF EXISTS public.orders")
        await connection.execute("CREATE TABLE public.orders (id serial PRIMARY KEY, n int)")
        await connection.execute("INSERT INTO public.orders (n) VALUES (5)")
        await served.register(STRICT)
        await served.json("PUT", "/api/credentials/db", {"kind": "postgres", "data": {"dsn": address}})
        table = {
            "name": "t",
            "path": "test/orders",
            "source": "table",
            "auth": "db",
            "table": "public.orders",
            "key": "id",
        }
        more = {"begin": "first", "channel": "orders", "every": "1h", "payload": PAYLOAD}
        await served.json("POST", "/api/subscriptions", {**table, **more, "paused": True}, status=201)
        tested = await served.json("POST", "/api/subscriptions/t/test")
        assert tested == {
            "ok": True,
            "messages": [{"message_id": "1", "payload": {"n": 5}, "problem": ""}],
            "lag": 0,
            "error": "",
        }
        await served.json("POST", "/api/subscriptions/t/resume")
        listen = {
            "name": "l",
            "path": "test/orders",
            "source": "listen",
            "auth": "db",
            "channel": "news",
            "payload": PAYLOAD,
        }
        await served.json("POST", "/api/subscriptions", listen, status=201)
        assert await payloads(served, 1) == [{"n": 5}]

        async def listening() -> Any:
            return (await served.json("GET", "/api/subscriptions/l"))["polled_at"]

        await until(listening)
        await connection.execute("INSERT INTO public.orders (n) VALUES (6)")
        await connection.execute("NOTIFY orders")
        await connection.execute("NOTIFY news, '{\"n\": 7}'")
        assert sorted(one["n"] for one in await payloads(served, 3)) == [5, 6, 7]
        assert (await served.json("GET", "/api/subscriptions/t"))["position"] == {"after": "2"}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"source": "folder", "folder": "/etc", "url": "", "id": ""}, "NOETL_SUBSCRIPTION_FOLDERS"),
        ({"source": "table", "auth": "none", "table": "a", "key": "b", "url": "", "id": ""}, "no credential `none`"),
        ({"url": "http://127.0.0.1:9/x"}, "127.0.0.1"),
    ],
)
async def test_a_test_says_why_a_source_cannot_be_read(tmp_path: Path, fields: dict[str, Any], text: str) -> None:
    async with in_process(tmp_path, SERVER, egress_private=False) as served:
        await served.register(STRICT)
        await served.json("POST", "/api/subscriptions", {**HTTP, **fields}, status=201)
        found = await served.json("POST", "/api/subscriptions/s/test")
        assert not found["ok"]
        assert text in found["error"]


async def test_triggers_of_a_playbook_make_and_remove_subscriptions(tmp_path: Path) -> None:
    spec = {"subscription": "in", "source": "folder", "folder": "/srv/drop", "payload": PAYLOAD}
    async with in_process(tmp_path, SERVER) as served:
        await served.register(STRICT.replace("workflow:", f"triggers: [{spec}]\nworkflow:"))
        [row] = (await served.json("GET", "/api/subscriptions"))["subscriptions"]
        assert (row["subscription_id"], row["owner"], row["source"]) == ("test:orders:in", "test/orders", "folder")
        await served.json("DELETE", "/api/subscriptions/test:orders:in", status=409)
        await served.register(STRICT)
        assert (await served.json("GET", "/api/subscriptions"))["subscriptions"] == []


async def test_a_restored_store_pauses_its_subscriptions(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        await served.register(STRICT)
        for name, paused in (("a", False), ("b", False), ("c", True)):
            await served.json("POST", "/api/subscriptions", {**HTTP, "name": name, "paused": paused}, status=201)
        assert await pause_subscriptions(served.services.triggers, 1) == 2
        rows = (await served.json("GET", "/api/subscriptions"))["subscriptions"]
        assert [row["paused"] for row in rows] == [True, True, True]


async def test_namespaces_hide_subscriptions_of_others(tmp_path: Path) -> None:
    own = await secret(tmp_path, "editor", "own", namespaces=["test/"])
    other = await secret(tmp_path, "editor", "other", namespaces=["elsewhere/"])
    near = await secret(tmp_path, "editor", "near", namespaces=["tess/"])
    viewer = await secret(tmp_path, "viewer", "viewer")
    server = ServerSettings(key=new_key(), auth="token")
    async with in_process(tmp_path, server) as served:
        await served.json("POST", "/api/catalog", {"content": STRICT}, headers=bearer(own))
        misspelt = {**HTTP, "path": HTTP["path"].replace("test/", "tess/")}
        refused = await served.json("POST", "/api/subscriptions", misspelt, 404, headers=bearer(near))
        assert "Did you mean" not in refused["detail"]
        await served.json("POST", "/api/subscriptions", HTTP, 201, headers=bearer(own))
        await served.json("POST", "/api/subscriptions", {**HTTP, "name": "x"}, 404, headers=bearer(other))
        await served.json("POST", "/api/subscriptions", {**HTTP, "name": "x"}, 403, headers=bearer(viewer))
        for found, count in ((own, 1), (viewer, 1), (other, 0)):
            page = await served.json("GET", "/api/subscriptions", headers=bearer(found))
            assert len(page["subscriptions"]) == count
        await served.json("GET", "/api/subscriptions/s", status=404, headers=bearer(other))
        await served.json("DELETE", "/api/subscriptions/s", status=404, headers=bearer(other))
        await served.json("POST", "/api/subscriptions/s/pause", status=403, headers=bearer(viewer))


DOCUMENT = """\
apiVersion: noetl.io/v2
kind: Subscription
metadata: {{ name: drop, path: test/drop }}
spec:
  source: folder
  stream: {folder}
  runtime: {{ every: 1 }}
  dispatch: {{ playbook: {path}, payload: {{ n: "{{{{ message.data.n }}}}" }} }}
"""


async def test_a_document_starts_the_playbook_that_it_names(tmp_path: Path) -> None:
    folder = tmp_path / "drop"
    folder.mkdir()
    document = DOCUMENT.format(folder=folder, path="test/orders")
    async with in_process(tmp_path, SERVER, subscription_folders=(str(folder),)) as served:
        early = await served.json("POST", "/api/catalog", {"content": document}, status=404)
        assert "test/orders" in early["detail"]
        assert (await served.json("GET", "/api/subscriptions"))["subscriptions"] == []
        await served.register(STRICT)
        await served.json("POST", "/api/catalog", {"content": document}, status=201)
        [row] = (await served.json("GET", "/api/subscriptions"))["subscriptions"]
        assert (row["path"], row["owner"], row["source"], row["paused"]) == (
            "test/orders",
            "test/drop",
            "folder",
            False,
        )
        put(folder, "one.json", '{"n": 7}')
        assert await payloads(served, 1) == [{"n": 7}]
        [started] = (await served.json("GET", "/api/executions"))["executions"]
        assert started["path"] == "test/orders"
        await served.json("DELETE", "/api/catalog?path=test/drop")
        assert (await served.json("GET", "/api/subscriptions"))["subscriptions"] == []


async def test_a_document_can_be_changed_and_registered_paused(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        await served.register(STRICT)
        paused = DOCUMENT.format(folder="/srv/a", path="test/orders") + "  activation: manual\n"
        await served.json("POST", "/api/catalog", {"content": paused}, status=201)
        other = paused.replace("/srv/a", "/srv/b").replace("test/orders,", "test/orders, version: 1,")
        await served.json("POST", "/api/catalog", {"content": other}, status=201)
        [row] = (await served.json("GET", "/api/subscriptions"))["subscriptions"]
        assert (row["spec"]["folder"], row["version"], row["paused"]) == ("/srv/b", 1, True)


async def test_a_document_with_a_source_that_cannot_be_read_is_registered_and_says_so(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        await served.register(STRICT)
        document = DOCUMENT.format(folder="/srv/a", path="test/orders").replace("source: folder", "source: kafka")
        made = await served.json("POST", "/api/catalog", {"content": document}, status=201)
        assert "cannot be read by this version" in made["diagnostics"][0]["message"]
        assert (await served.json("GET", "/api/subscriptions"))["subscriptions"] == []


async def test_unknown_keys_are_left_out_where_they_are_tolerated(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        odd = STRICT.replace("tool: {kind: noop}", "tool: {kind: noop, strange: 1}\n    stranger: 2")
        await served.json("POST", "/api/catalog", {"content": odd}, status=422)
        made = await served.json("POST", "/api/catalog", {"content": odd, "tolerant": True}, status=201)
        assert {one["severity"] for one in made["diagnostics"]} == {"warning"}
        same = await served.json("POST", "/api/catalog", {"content": STRICT, "check_only": True}, status=201)
        assert made["playbook"] == same["playbook"]
