"""Audit trail: every change leaves its entry in the transaction that makes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from noetl.ports.outbox import OutboxMessage
from noetl.server.api import endpoints
from noetl.settings import ServerSettings
from tests.server.serving import FAILS, ONE, WAITS, Served, bearer, in_process, secret

pytestmark = pytest.mark.asyncio
Asked = tuple[str, Any]  # the path of a request, and its body
ACTS = [one for one in endpoints() if one.act]
# Calls of workers are not entries of their own: what they did stands in the log of the execution, under their name.
QUIET = {
    "POST /api/worker/claim", "POST /api/worker/report", "POST /api/worker/heartbeat", "POST /api/worker/ack",
    "POST /api/worker/release", "POST /queue/lease", "POST /api/queue/{work_id}/heartbeat", "POST /events",
    "POST /api/workers/{worker_id}/heartbeat", "PUT /api/blobs", "POST /context/render", "POST /api/worker/outbox",
    "POST /api/hooks/{webhook_id}",  # what it starts is an entry of the webhook: see test_webhooks.py
    "POST /api/worker/access-token",
    *(one.name for one in endpoints() if one.noun == "language"),  # they read the text that they are given
}  # fmt: skip


async def waiting(served: Served) -> str:
    started = await served.start(WAITS)
    await served.until(started, "waiting")
    return started


async def ended(served: Served, content: str = ONE) -> str:
    started = await served.start(content)
    await served.until(started, "completed", "failed")
    return started


def steered(verb: str, body: Any = None) -> Callable[[Served], Awaitable[Asked]]:
    async def ask(served: Served) -> Asked:
        return f"/api/executions/{await waiting(served)}/{verb}", body or {}

    return ask


def plain(path: str, body: Any = None) -> Callable[[Served], Awaitable[Asked]]:
    async def ask(_: Served) -> Asked:
        return path, body

    return ask


async def start(served: Served) -> Asked:
    return "/api/execute", {"path": await served.register(WAITS)}


async def attempt(served: Served) -> Asked:
    await served.register(WAITS)  # else it is registered, with an entry of its own
    return "/api/try", {"content": WAITS}


async def start_many(served: Served) -> Asked:
    return "/api/execute/many", {"path": await served.register(WAITS), "payloads": [{"n": 1}]}


async def start_named(served: Served) -> Asked:
    return "/api/executions/execute", {"playbook_id": await served.register(WAITS)}


async def registered(served: Served) -> Asked:
    return f"/api/catalog?path={await served.register(ONE)}", None


async def deletion(served: Served) -> Asked:
    return f"/api/executions/{await ended(served)}", None


async def forking(served: Served) -> Asked:
    return f"/api/executions/{await ended(served)}/fork", {"start": "one"}


async def retrying(served: Served) -> Asked:
    return f"/api/executions/{await ended(served, FAILS)}/retry", {}


async def cancelling_many(served: Served) -> Asked:
    return "/api/executions/cancel", {"ids": [await waiting(served)], "reason": "enough"}


async def retrying_many(served: Served) -> Asked:
    return "/api/executions/retry", {"ids": [await ended(served, FAILS)]}


async def patching(served: Served) -> Asked:
    return f"/api/vars/{await waiting(served)}", {"writes": {"n": 1}}


async def completing(served: Served) -> Asked:
    return f"/api/admin/executions/{await waiting(served)}/steps/ask/force-complete", {"result": 1}


async def credential(served: Served) -> Asked:
    await served.json("PUT", "/api/credentials/pg", {"data": {"a": 1}})
    return "/api/credentials/pg", None


async def trying(served: Served) -> Asked:
    return (await credential(served))[0] + "/test", {}


async def token(served: Served) -> Asked:
    made_one = await served.json("POST", "/api/tokens", {"role": "viewer"})
    return f"/api/tokens/{made_one['token_id']}", None


def worker(verb: str = "") -> Callable[[Served], Awaitable[Asked]]:
    async def ask(served: Served) -> Asked:
        found = await served.json("POST", "/api/workers", {"worker_id": "host:1"})
        return f"/api/workers/{found['worker_id']}{verb}", {} if verb else None

    return ask


async def using(served: Served) -> Asked:
    await served.json("PUT", "/api/credentials/pg", {"data": {"a": 1}})
    await served.json("POST", "/api/worker/hello", {"worker": "w", "pools": ["mine"], "acks": False})
    content = WAITS.replace("workflow:", "executor: {spec: {pool: mine}}\nkeychain: [{name: pg}]\nworkflow:").replace(
        "kind: wait, signal: go", "kind: noop"
    )
    await served.start(content)
    claimed = await served.json("POST", "/api/worker/claim", {"id": "c", "worker": "w"})
    (lease,) = claimed["leases"]
    return "/api/worker/credential", {"name": "pg", "worker": "w", "work": [lease["work"]["work_id"], lease["epoch"]]}


def message(verb: str, body: Any) -> Callable[[Served], Awaitable[Asked]]:
    async def ask(served: Served) -> Asked:
        number = await served.services.outbox.put(OutboxMessage("k", available_at=2**50), 100)
        return f"/api/outbox/{number}/{verb}", body

    return ask


async def scheduling(served: Served) -> Asked:
    return "/api/schedules", {"name": "s", "path": await served.register(ONE), "every": "1d"}


def schedule(verb: str = "", body: Any = None) -> Callable[[Served], Awaitable[Asked]]:
    async def ask(served: Served) -> Asked:
        path, made = await scheduling(served)
        await served.json("POST", path, made)
        return f"/api/schedules/s{verb}", body

    return ask


async def hooking(served: Served) -> Asked:
    await served.json("PUT", "/api/credentials/hook", {"data": {"value": "x" * 20}})
    return "/api/webhooks", {"name": "w", "path": await served.register(ONE), "auth": "secret", "credential": "hook"}


def webhook(verb: str = "", body: Any = None) -> Callable[[Served], Awaitable[Asked]]:
    async def ask(served: Served) -> Asked:
        path, made = await hooking(served)
        await served.json("POST", path, made)
        return f"/api/webhooks/w{verb}", body

    return ask


async def triggering(served: Served) -> Asked:
    return "/api/triggers", {"name": "t", "path": await served.register(ONE), "after": "other/*"}


def trigger(verb: str = "", body: Any = None) -> Callable[[Served], Awaitable[Asked]]:
    async def ask(served: Served) -> Asked:
        path, made = await triggering(served)
        await served.json("POST", path, made)
        return f"/api/triggers/t{verb}", body

    return ask


NOTIFICATION = {"name": "n", "path": "test/*", "on": ["failed"], "channel": "webhook", "url": "http://127.0.0.1:9/x"}


def notification(verb: str = "", body: Any = None) -> Callable[[Served], Awaitable[Asked]]:
    async def ask(served: Served) -> Asked:
        await served.json("POST", "/api/notifications", NOTIFICATION)
        return f"/api/notifications/n{verb}", body

    return ask


SUBSCRIPTION = {
    "name": "m", "path": "test/one", "source": "folder", "folder": "/none", "paused": True,
}  # fmt: skip


def subscription(verb: str = "") -> Callable[[Served], Awaitable[Asked]]:
    async def ask(served: Served) -> Asked:
        await served.register(ONE)
        await served.json("POST", "/api/subscriptions", SUBSCRIPTION)
        return f"/api/subscriptions/m{verb}", None

    return ask


async def subscribed(served: Served) -> Asked:
    await served.register(ONE)
    return "/api/subscriptions", SUBSCRIPTION


def letter(verb: str, body: Any) -> Callable[[Served], Awaitable[Asked]]:
    async def ask(served: Served) -> Asked:
        await ended(served, FAILS)
        (found,) = (await served.json("GET", "/api/dlq"))["letters"]
        return f"/api/dlq/{found['message_id']}/{verb}", body

    return ask


def letters(verb: str, body: Any) -> Callable[[Served], Awaitable[Asked]]:
    async def ask(served: Served) -> Asked:
        await ended(served, FAILS)
        return f"/api/dlq/{verb}", body

    return ask


async def user(served: Served) -> Asked:
    await served.json("POST", "/api/users", {"name": "bob"})
    return "/api/users/bob", None


async def group(served: Served) -> Asked:
    await served.json("PUT", "/api/groups/ops", {"grants": [{"role": "viewer"}]})
    return "/api/groups/ops", None


async def changed_user(served: Served) -> Asked:
    return (await user(served))[0], {"disabled": True}


async def signing_in(served: Served) -> Asked:
    await served.json("POST", "/api/users", {"name": "ada", "password": "correct horse"})
    return "/api/session", {"user": "ada", "password": "correct horse"}


async def signing_out(served: Served) -> Asked:
    """The session in a cookie is that of the request, and no token."""
    path, body = await signing_in(served)
    me = await served.json("POST", path, body)
    served.http.headers.pop("Authorization", None)
    served.http.headers["X-CSRF-Token"] = me["csrf"]
    return path, None


CALLS: dict[str, Callable[[Served], Awaitable[Asked]]] = {
    "POST /api/execute": start,
    "POST /api/try": attempt,
    "POST /api/execute/many": start_many,
    "POST /api/executions/execute": start_named,
    "POST /api/executions/{execution_id}/cancel": steered("cancel", {"reason": "enough"}),
    "POST /api/executions/cancel": cancelling_many,
    "POST /api/executions/retry": retrying_many,
    "POST /api/executions/{execution_id}/pause": steered("pause"),
    "POST /api/executions/{execution_id}/resume": steered("resume"),
    "POST /api/executions/{execution_id}/signal": steered("signal", {"name": "go"}),
    "PATCH /api/executions/{execution_id}/ctx": steered("ctx", {"writes": {"n": 1}}),
    "POST /api/admin/executions/{execution_id}/steps/{step}/force-complete": completing,
    "POST /api/executions/{execution_id}/fork": forking,
    "POST /api/executions/{execution_id}/retry": retrying,
    "DELETE /api/executions/{execution_id}": deletion,
    "POST /api/dlq/{message_id}/replay": letter("replay", {}),
    "POST /api/dlq/replay": letters("replay", {"step": "bad"}),
    "POST /api/dlq/{message_id}/discard": letter("discard", {"reason": "enough"}),
    "POST /api/dlq/discard": letters("discard", {"step": "bad", "reason": "enough"}),
    "POST /api/vars/{execution_id}": patching,
    "POST /api/schedules": scheduling,
    "PATCH /api/schedules/{schedule_id}": schedule("", {"every": "2d"}),
    "POST /api/schedules/{schedule_id}/backfill": schedule("/backfill", {"since": 0, "until": 864_000_000}),
    "POST /api/schedules/{schedule_id}/pause": schedule("/pause"),
    "POST /api/schedules/{schedule_id}/resume": schedule("/resume"),
    "DELETE /api/schedules/{schedule_id}": schedule(),
    "POST /api/webhooks": hooking,
    "POST /api/webhooks/{webhook_id}/pause": webhook("/pause"),
    "POST /api/webhooks/{webhook_id}/resume": webhook("/resume"),
    "POST /api/webhooks/{webhook_id}/test": webhook("/test", {}),
    "DELETE /api/webhooks/{webhook_id}": webhook(),
    "POST /api/subscriptions": subscribed,
    "POST /api/subscriptions/{subscription_id}/pause": subscription("/pause"),
    "POST /api/subscriptions/{subscription_id}/resume": subscription("/resume"),
    "POST /api/subscriptions/{subscription_id}/test": subscription("/test"),
    "DELETE /api/subscriptions/{subscription_id}": subscription(),
    "POST /api/notifications": plain("/api/notifications", NOTIFICATION),
    "POST /api/notifications/{notification_id}/test": notification("/test"),
    "POST /api/notifications/{notification_id}/pause": notification("/pause"),
    "POST /api/notifications/{notification_id}/resume": notification("/resume"),
    "POST /api/triggers": triggering,
    "POST /api/triggers/{trigger_id}/pause": trigger("/pause"),
    "POST /api/triggers/{trigger_id}/resume": trigger("/resume"),
    "DELETE /api/triggers/{trigger_id}": trigger(),
    "DELETE /api/notifications/{notification_id}": notification(),
    "POST /api/catalog": plain("/api/catalog", {"content": ONE}),
    "DELETE /api/catalog": registered,
    "PUT /api/credentials/{name}": plain("/api/credentials/pg", {"data": {"a": 1}}),
    "DELETE /api/credentials/{name}": credential,
    "POST /api/credentials/{name}/test": trying,
    "POST /api/outbox/{number}/retry": message("retry", {}),
    "POST /api/outbox/{number}/discard": message("discard", {"reason": "enough"}),
    "POST /api/keys/rotate": plain("/api/keys/rotate", {}),
    "POST /api/tokens": plain("/api/tokens", {"role": "viewer"}),
    "DELETE /api/tokens/{token_id}": token,
    "POST /api/users": plain("/api/users", {"name": "bob", "grants": [{"role": "viewer"}]}),
    "PATCH /api/users/{name}": changed_user,
    "DELETE /api/users/{name}": user,
    "PUT /api/groups/{name}": plain("/api/groups/ops", {"grants": []}),
    "DELETE /api/groups/{name}": group,
    "POST /api/session": signing_in,
    "DELETE /api/session": signing_out,
    "POST /api/workers": plain("/api/workers", {"worker_id": "host:1", "pool": "gpu"}),
    "POST /api/workers/{worker_id}/drain": worker("/drain"),
    "DELETE /api/workers/{worker_id}": worker(),
    "POST /api/worker/hello": plain("/api/worker/hello", {"worker": "w", "acks": False}),
    "POST /api/worker/credential": using,
}


async def test_every_route_that_changes_something_is_here() -> None:
    changing = {one.name for one in endpoints() if one.method != "GET"}
    assert changing - QUIET == set(CALLS) == {one.name for one in ACTS}


@pytest.mark.parametrize("endpoint", ACTS, ids=lambda endpoint: endpoint.name)
async def test_a_change_leaves_its_entry_with_its_actor(tmp_path: Path, endpoint: Any) -> None:
    ada = await secret(tmp_path, "admin", "ada")
    async with in_process(tmp_path, ServerSettings(auth="token")) as served, served.embedded.run_worker(""):
        served.http.headers.update(bearer(ada))
        path, body = await CALLS[endpoint.name](served)
        before = len(await served.services.team.audited(limit=100))
        await served.json(endpoint.method, path, body)
        entries = await served.services.team.audited(limit=100)
        mine = entries[: len(entries) - before]
        assert [(one.actor, one.action) for one in mine] == [("ada", endpoint.act)]
        assert mine[0].entity
        assert mine[0].at > 0


def contents(folder: Path) -> dict[str, list[Any]]:
    """Everything that is written down, but for who is there and when they were seen."""
    with sqlite3.connect(folder / "noetl.db") as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        kept = (name for name in names if not name.startswith("sqlite_") and name != "counter")
        return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=str) for name in kept}


@pytest.mark.parametrize("endpoint", ACTS, ids=lambda endpoint: endpoint.name)
async def test_what_cannot_be_noted_is_not_done(tmp_path: Path, endpoint: Any) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        path, body = await CALLS[endpoint.name](served)
        with sqlite3.connect(tmp_path / "noetl.db") as connection:
            connection.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no entries today'); END"
            )
        before = contents(tmp_path)
        answer = await served.http.request(endpoint.method, path, json=body)
        assert not answer.is_success, answer.text
        assert contents(tmp_path) == before


async def test_what_changes_nothing_leaves_no_entry(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path, key = await served.register(WAITS), {"Idempotency-Key": "k"}
        await served.register(WAITS)
        for _ in range(2):
            await served.json("POST", "/api/execute", {"path": path}, headers=key)
        await served.json("POST", "/api/execute", {"path": "no/such"}, 404)
        await served.json("DELETE", "/api/credentials/none", status=404)
        entries = await served.services.team.audited(limit=100)
        assert [one.action for one in entries] == ["execution.start", "playbook.register"]
