"""Webhooks over HTTP: made, delivered to, deduplicated, paused; hostile senders."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from noetl.server.auth.vault import new_key
from noetl.settings import HttpSettings, ServerSettings
from noetl.triggers.signatures import signed_headers
from noetl.triggers.webhook import WebhookSpec
from tests.server.serving import Served, bearer, in_process, playbook, secret

pytestmark = pytest.mark.asyncio
SECRET = "a secret of more than sixteen characters"
ECHO = playbook("  - step: one\n    tool: {kind: noop, result: '{{ workload }}'}\n", "echo", workload={"n": 1})
STRICT = playbook(
    "  - step: one\n    tool: {kind: noop}\n",
    "strict",
    executor={"spec": {"workload_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}},
)
SERVER = ServerSettings(key=new_key(), http=HttpSettings(delivery_bytes=10_000))


async def made(served: Served, content: str = ECHO, **fields: Any) -> WebhookSpec:
    path = await served.register(content)
    await served.json("PUT", "/api/credentials/hook", {"kind": "secret", "data": {"value": SECRET}})
    body = {"name": "h", "path": path, "auth": "hmac", "credential": "hook", **fields}
    await served.json("POST", "/api/webhooks", body, status=201)
    kept = {name: value for name, value in body.items() if name in WebhookSpec.__struct_fields__}
    return WebhookSpec(**kept)


async def deliver(
    served: Served, spec: WebhookSpec, body: bytes = b"{}", where: str = "h", **headers: str
) -> httpx.Response:
    """Sign a body as a sender does, and post it; given headers win."""
    signed: dict[Any, Any] = {b"content-type": b"application/json"}
    signed |= signed_headers(spec, SECRET.encode(), body, served.services.clock.civil())
    signed |= {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return await served.http.post(f"/api/hooks/{where}", content=body, headers=signed)


async def payload_of(served: Served, answer: httpx.Response) -> Any:
    assert answer.status_code == 201, answer.text
    [first] = await served.services.store.read(answer.json()["execution_id"], 0, 1)
    return first.payload["payload"]


async def executions(served: Served) -> int:
    return len((await served.json("GET", "/api/executions"))["executions"])


async def reasons(served: Served) -> dict[str, int]:
    entries = await served.services.team.audited(entity="h", limit=100)
    found = [one.detail["reasons"] for one in entries if one.action == "webhook.refuse"]
    return {name: count for one in found for name, count in one.items()}


async def test_a_webhook_is_made_listed_shown_and_deleted(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        await made(served, payload={"n": "{{ body.n }}"})
        row = await served.json("GET", "/api/webhooks/h")
        assert (row["url"], row["header"], row["problem"]) == ("/api/hooks/h", "x-signature", "")
        assert SECRET not in json.dumps(row)
        page = await served.json("GET", "/api/webhooks?limit=1")
        assert (page["webhooks"], page["next"]) == ([row], "h")
        assert (await served.json("GET", "/api/webhooks?path=other"))["webhooks"] == []
        body = {"name": "h", "path": row["path"], "auth": "github", "credential": "hook"}
        assert "There is a webhook" in (await served.json("POST", "/api/webhooks", body, status=409))["detail"]
        await served.json("DELETE", "/api/credentials/hook")
        assert "no credential `hook`" in (await served.json("GET", "/api/webhooks/h"))["problem"]
        assert await served.json("DELETE", "/api/webhooks/h") == {"removed": 1}
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/test")):
            await served.json(method, f"/api/webhooks/h{path}", {}, status=404)
        assert (await served.http.post("/api/hooks/h", json={})).status_code == 404


@pytest.mark.parametrize(
    ("fields", "status", "where", "text"),
    [
        ({"auth": "basic"}, 422, "$.auth", "basic"),
        ({"credential": "none"}, 422, "$.credential", "no credential `none`"),
        ({"credential": "short"}, 422, "$.credential", "less than 16"),
        ({"credential": "odd"}, 422, "$.credential", "no field"),
        ({"name": "a/b"}, 422, "$.name", ""),
        ({"wait": "1h"}, 422, "$.wait", "out of range"),
        ({"payload": {"n": "{{ ctx.n }}"}}, 422, "$.payload.n", "no `ctx`"),
        ({"dedup": "{{ x("}, 422, "$.dedup", "cannot be read"),
        ({"path": "test/ech"}, 404, None, "Did you mean"),
        ({"version": 9}, 404, None, "version 9"),
    ],
)
async def test_a_mistake_is_refused_with_its_place(
    tmp_path: Path, fields: dict[str, Any], status: int, where: str | None, text: str
) -> None:
    async with in_process(tmp_path, SERVER) as served:
        path = await served.register(ECHO)
        for name, data in (("hook", {"value": SECRET}), ("short", {"value": "x"}), ("odd", {"user": "x"})):
            await served.json("PUT", f"/api/credentials/{name}", {"data": data})
        body = {"name": "h", "path": path, "auth": "hmac", "credential": "hook", **fields}
        problem = await served.json("POST", "/api/webhooks", body, status=status)
        assert text in problem["detail"]
        assert where is None or problem["where"] == where
        assert (await served.json("GET", "/api/webhooks"))["webhooks"] == []


@pytest.mark.parametrize("auth", ["secret", "hmac", "github", "stripe"])
async def test_a_delivery_starts_once_whatever_its_form(tmp_path: Path, auth: str) -> None:
    async with in_process(tmp_path, SERVER) as served:
        spec = await made(served, auth=auth)
        headers = {"idempotency_key": "1", "x_github_delivery": "1"}
        body = b'{"id": "evt_1", "n": 2}'
        first = await deliver(served, spec, body, **headers)
        again = await deliver(served, spec, body, **headers, x_retry="1")
        assert (first.status_code, again.status_code) == (201, 201)
        assert again.json()["execution_id"] == first.json()["execution_id"]
        assert (first.json()["repeated"], again.json()["repeated"]) == (False, True)
        other = await deliver(served, spec, b'{"id": "evt_2"}', idempotency_key="2", x_github_delivery="2")
        assert not other.json()["repeated"]
        assert await executions(served) == 2
        payload = await payload_of(served, first)
        assert payload["body"] == {"id": "evt_1", "n": 2}
        assert spec.carrier not in payload["headers"]
        [entry] = await served.services.team.audited(entity=first.json()["execution_id"])
        assert (entry.actor, entry.action) == ("webhook:h", "execution.start")


async def test_concurrent_deliveries_of_one_event_start_one_execution(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        spec = await made(served, dedup="{{ body.id }}")
        answers = await asyncio.gather(*(deliver(served, spec, b'{"id": 7, "try": %d}' % n) for n in range(8)))
        assert {one.status_code for one in answers} == {201}
        assert len({one.json()["execution_id"] for one in answers}) == 1
        assert await executions(served) == 1


@pytest.mark.parametrize(
    ("kind", "body", "found"),
    [
        ("application/json; charset=UTF-8", b'{"n": [1, "\xc3\xa9"]}', {"n": [1, "é"]}),
        ("application/vnd.github+json", b"[]", []),
        ("application/x-www-form-urlencoded", b"a=1&b=%C3%A9&a=2&c=", {"a": ["1", "2"], "b": "é", "c": ""}),
        ("text/plain", "{{ 7 * 7 }} \u202e".encode(), "{{ 7 * 7 }} \u202e"),
    ],
)
async def test_a_body_is_parsed_by_its_type_and_never_rendered(
    tmp_path: Path, kind: str, body: bytes, found: Any
) -> None:
    async with in_process(tmp_path, SERVER) as served, served.embedded.run_worker(""):
        spec = await made(served, payload={"got": "{{ body }}", "q": "{{ query.q }}"}, wait="30s")
        answer = await deliver(served, spec, body, where="h?q=x%20y", content_type=kind)
        assert await payload_of(served, answer) == {"got": found, "q": "x y"}
        assert answer.json()["status"] == "completed"
        assert answer.json()["result"] == {"n": 1, "got": found, "q": "x y"}


HOSTILE: list[tuple[str, bytes, dict[str, str], int]] = [
    ("signature", b"{}", {"x_signature": "0" * 64}, 401),
    ("signature", b"{}", {"x_signature": "é"}, 401),
    ("signature", b"{}", {"x_signature": ""}, 401),
    ("too-large", b"[" + b" " * 50_000_000 + b"]", {}, 413),
    ("media-type", b"{}", {"content_type": "application/xml"}, 415),
    ("media-type", b"{}", {"content_type": "application/json; charset=utf-16"}, 415),
    ("media-type", b"{}", {"content_type": "\x00"}, 415),
    ("media-type", b"{}", {"content_encoding": "gzip"}, 415),
    ("malformed", b"{", {}, 400),
    ("malformed", b"", {}, 400),
    ("malformed", b'"\xff"', {}, 400),
    ("malformed", b'{"a": "\\ud800"}', {}, 400),
    ("malformed", b"[" * 5_000, {}, 400),
    ("malformed", b"\xed\xa0\x80", {"content_type": "text/plain"}, 400),
    ("malformed", b"a=%ff", {"content_type": "application/x-www-form-urlencoded"}, 400),
    ("malformed", b"a&" * 2_000, {"content_type": "application/x-www-form-urlencoded"}, 413),
]


@pytest.mark.parametrize(("reason", "body", "headers", "status"), HOSTILE, ids=range(len(HOSTILE)))
async def test_a_hostile_delivery_starts_nothing_and_is_audited(
    tmp_path: Path, reason: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    async with in_process(tmp_path, SERVER) as served:
        spec = await made(served)
        answer = await deliver(served, spec, body, **headers)
        assert answer.status_code == status, answer.text
        assert answer.json()["fix"]
        assert await executions(served) == 0
        assert await reasons(served) == {reason: 1}


async def test_the_audit_trail_counts_wrong_secrets(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        spec = await made(served, auth="secret")
        answer = await deliver(served, spec, x_webhook_secret="wrong")
        assert answer.status_code == 401
        [entry] = (await served.json("GET", "/api/audit?entity=h&limit=1"))["entries"]
        assert entry["detail"]["reasons"] == {"secret-mismatch": 1}


async def test_a_sender_learns_no_name_of_the_catalog(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        spec = await made(served)
        await served.register(playbook("  - {step: one, tool: {kind: noop}}\n", "echos"))
        await served.json("DELETE", "/api/catalog?path=test/echo")
        answer = await deliver(served, spec)
        assert answer.status_code == 404
        assert answer.json()["detail"] == "The playbook of this webhook is gone."
        assert "test/" not in answer.text
        assert await reasons(served) == {"not-found": 1}
        shown = await served.json("GET", "/api/webhooks/h")
        assert shown["problem"] == "The catalog has no `test/echo`. Register it, or delete the webhook."


async def test_a_body_without_a_length_is_refused_before_it_is_read_whole(tmp_path: Path) -> None:
    sent = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1_000):
            sent += 1
            yield b" " * 1_000

    async with in_process(tmp_path, SERVER) as served:
        await made(served)
        headers = {"Content-Type": "application/json"}
        answer = await served.http.post("/api/hooks/h", content=parts(), headers=headers)
        assert answer.status_code == 413
        assert sent < 50 or answer.headers["connection"] == "close"


async def test_an_old_delivery_is_refused(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        spec = await made(served, auth="stripe")
        old = signed_headers(spec, SECRET.encode(), b"{}", served.services.clock.civil() - 400_000)
        answer = await deliver(served, spec, stripe_signature=old[b"stripe-signature"].decode())
        assert answer.status_code == 401
        assert "timestamp" in answer.json()["detail"]
        assert await reasons(served) == {"timestamp": 1}


@pytest.mark.parametrize(
    ("fields", "body", "reason"),
    [
        ({"payload": {"n": "{{ body.missing.deep }}"}}, b"{}", "template"),
        ({"payload": {"n": "{{ range(10**9) | list | length }}"}}, b"{}", "template"),
        ({"dedup": "{{ body.id | default('') }}"}, b"{}", "dedup"),
        ({"dedup": "{{ body }}"}, b"{}", "dedup"),
        ({"payload": {"n": "{{ body.n }}"}}, b'{"n": "many"}', "payload"),
    ],
)
async def test_a_delivery_that_does_not_fit_is_answered_with_422(
    tmp_path: Path, fields: dict[str, Any], body: bytes, reason: str
) -> None:
    async with in_process(tmp_path, SERVER) as served:
        spec = await made(served, STRICT, **fields)
        answer = await deliver(served, spec, body)
        assert answer.status_code == 422, answer.text
        assert await executions(served) == 0
        assert await reasons(served) == {reason: 1}


async def test_a_paused_webhook_refuses_and_a_resumed_one_starts(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        spec = await made(served)
        assert (await served.json("POST", "/api/webhooks/h/pause"))["paused"]
        answer = await deliver(served, spec)
        assert (answer.status_code, answer.json()["detail"]) == (409, "This webhook is paused.")
        assert (await deliver(served, spec, x_signature="0")).status_code == 401
        assert await executions(served) == 0
        assert not (await served.json("POST", "/api/webhooks/h/resume"))["paused"]
        assert (await deliver(served, spec)).status_code == 201


async def test_a_webhook_without_its_credential_refuses_and_keeps_its_name(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        spec = await made(served)
        await served.json("DELETE", "/api/credentials/hook")
        answer = await deliver(served, spec)
        assert answer.status_code == 503
        assert "`hook`" not in answer.text
        assert await reasons(served) == {"not-ready": 1}


async def test_no_token_is_needed_or_counts(tmp_path: Path) -> None:
    ada = await secret(tmp_path, "admin", "ada")
    settings = ServerSettings(auth="token", key=new_key())
    async with in_process(tmp_path, settings) as served:
        served.http.headers.update(bearer(ada))
        spec = await made(served, auth="secret", header="Authorization")
        del served.http.headers["Authorization"]
        assert (await deliver(served, spec)).status_code == 201
        assert (await deliver(served, spec, authorization=f"Bearer {ada}")).status_code == 401
        assert (await served.http.post("/api/webhooks/h/test", json={})).status_code == 401


async def test_a_test_delivery_is_signed_by_the_server(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        for auth in ("secret", "hmac", "github", "stripe"):
            await made(served, auth=auth, payload={"n": "{{ body.n }}", "event": "{{ headers['x-event'] }}"})
            asked = {"body": '{"n": 2}', "headers": {"X-Event": "push"}}
            found = await served.json("POST", "/api/webhooks/h/test", asked, status=201)
            [first] = await served.services.store.read(found["execution_id"], 0, 1)
            assert first.payload["payload"] == {"n": 2, "event": "push"}
            assert first.payload["tags"] == ["webhook:h"]
            await served.json("DELETE", "/api/webhooks/h")
        await made(served)
        await served.json("POST", "/api/webhooks/h/test", {"body": "{"}, status=400)
        await served.json("POST", "/api/webhooks/h/test", {"body": " " * 20_000}, status=413)


async def test_the_latest_playbook_decides_about_its_webhooks(tmp_path: Path) -> None:
    hook = {"webhook": "push", "auth": "github", "credential": "hook", "payload": {"n": "{{ body.n }}"}}
    workflow = "  - step: one\n    tool: {kind: noop}\n"
    async with in_process(tmp_path, SERVER) as served:
        await served.json("PUT", "/api/credentials/hook", {"kind": "secret", "data": {"value": SECRET}})
        timed = {"schedule": "push", "every": "1d"}
        path = await served.register(playbook(workflow, "auto", triggers=[hook, timed]))
        row = await served.json("GET", "/api/webhooks/test:auto:push")
        assert (row["owner"], row["created_by"], row["url"]) == (path, "local", "/api/hooks/test:auto:push")
        assert [one["schedule_id"] for one in (await served.json("GET", "/api/schedules"))["schedules"]] == [
            "test:auto:push"
        ]
        spec = WebhookSpec("github", "hook")
        answer = await deliver(served, spec, b'{"n": 5}', where="test:auto:push")
        assert await payload_of(served, answer) == {"n": 5}
        await served.json("DELETE", "/api/webhooks/test:auto:push", status=409)
        await served.json("POST", "/api/webhooks/test:auto:push/pause")
        await served.register(playbook(workflow, "auto", triggers=[{**hook, "wait": "5s"}]))
        row = await served.json("GET", "/api/webhooks/test:auto:push")
        assert (row["wait"], row["paused"]) == ("5s", True)
        assert (await served.json("GET", "/api/credentials/hook"))["playbooks"] == [path]
        await served.register(playbook(workflow, "auto"))
        await served.json("GET", "/api/webhooks/test:auto:push", status=404)
