"""Kind `http` against a real server: bodies, headers, credentials, failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio

from noetl.clock import SteadyClock
from noetl.engine.tasks.actions import RunTask
from noetl.engine.tasks.run_info import RunInfo
from noetl.model.outcome import Outcome
from noetl.model.refs import compacted, expanded
from noetl.ports import Blobs, Children, ControlPlane
from noetl.ports.web import WebClient
from noetl.ports.work import run_tool
from noetl.tools import kinds
from noetl.tools.fields import excerpt, retry_after
from noetl.tools.http import _data
from noetl.worker.http.clients import HttpClient
from noetl.worker.secrets.redact import Secrets
from noetl.worker.tool_context import DetachedRun, TaskContext, WorkerResources
from tests.tools.web import Web

pytestmark = pytest.mark.asyncio
CREDENTIALS: dict[str, dict[str, Any]] = {
    "token": {"token": "t0ken"},
    "user": {"username": "ada", "password": "pw"},
    "key": {"api_key": "k3y", "header": "X-Key"},
    "number": {"token": 12345678},
    "listed": {"token": ["hush-hush"]},
    "mapped": {"value": {"hush": "hush"}},
    "scheme": {"token": "hush", "scheme": ["hush"]},
    "other": {"nothing": "hush-hush", "token": None, "user": ""},
}


@pytest_asyncio.fixture
async def client() -> AsyncIterator[WebClient]:
    made = HttpClient()
    yield made.get()
    await made.close()


async def send(client: Any, auth: Any = None, spec: Mapping[str, Any] | None = None, **fields: Any) -> Outcome:
    """Run one attempt as a worker does."""

    async def credential(name: str) -> Mapping[str, Any]:
        return CREDENTIALS[name]

    clock = SteadyClock()
    tools = kinds()
    shared = WorkerResources(
        cast(ControlPlane, None),
        tools,
        tools,
        clock,
        cast(Children, None),
        cast(Blobs, None),
        client if callable(client) else lambda *_: client,
        credential,
    )
    task = RunTask("call", "http", fields, {}, {}, 1, "7:s:call", auth, spec=dict(spec or {}))
    runner = tools.runner("http")
    assert runner is not None
    return await run_tool(runner, fields, TaskContext(DetachedRun(shared, RunInfo("7", "s")), task))


async def test_the_answer_is_plain_data(web: Web, client: WebClient) -> None:
    outcome = await send(client, url=f"{web.url}/json", params={"a": [1, 2], "b": None, "c": True})
    assert outcome.status == "ok"
    assert outcome.result["data"] == outcome.result["body"] == {"n": 1}
    kept = compacted(outcome.result)
    assert (kept["also"], "body" in kept["value"], expanded(kept)) == ({"body": "data"}, False, outcome.result)
    assert outcome.result["status"] == outcome.result["status_code"] == 200
    assert outcome.result["headers"]["content-type"] == "application/json"
    assert outcome.result["url"].startswith(web.url)
    assert outcome.result["elapsed"] >= 0
    assert outcome.as_data()["http"]["status"] == 200
    assert web.asked[0].path == "/json?a=1&a=2&c=true"


async def test_every_request_carries_its_idempotency_key(web: Web, client: WebClient) -> None:
    await send(client, url=f"{web.url}/json", headers={"X-Number": 7})
    assert web.asked[0].headers["idempotency-key"] == "7:s:call"
    assert web.asked[0].headers["x-number"] == "7"
    await send(client, url=f"{web.url}/json", headers={"idempotency-key": "mine"})
    assert web.asked[1].headers["idempotency-key"] == "mine"


@pytest.mark.parametrize(
    ("fields", "kind", "body"),
    [
        ({"body": {"a": 1}}, "application/json", b'{"a":1}'),
        ({"body": "raw"}, None, b"raw"),
        ({"json": [1, None]}, "application/json", b"[1,null]"),
        ({"json": "text"}, "application/json", b'"text"'),
        ({"data": {"a": 1}}, "application/json", b'{"a":1}'),
        ({"data": "a=1"}, None, b"a=1"),
        ({"form": {"a": 1, "b": None, "c": "x y"}}, "application/x-www-form-urlencoded", b"a=1&c=x+y"),
        ({}, None, b""),
    ],
)
async def test_every_body_is_sent_as_it_says(
    web: Web, client: WebClient, fields: dict[str, Any], kind: str | None, body: bytes
) -> None:
    await send(client, url=f"{web.url}/json", method="POST", **fields)
    (asked,) = web.asked
    assert asked.method == "POST"
    assert asked.headers.get("content-type") == kind
    assert asked.body == body or json.loads(asked.body) == json.loads(body)


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [("token", "authorization", "Bearer t0ken"), ("user", "authorization", "Basic YWRhOnB3"), ("key", "x-key", "k3y"),
     ("number", "authorization", "Bearer 12345678"),
     ({"token": "inline"}, "authorization", "Bearer inline")],
)  # fmt: skip
async def test_a_credential_goes_where_it_belongs(
    web: Web, client: WebClient, auth: Any, header: str, value: str
) -> None:
    await send(client, auth, url=f"{web.url}/json")
    assert web.asked[0].headers[header] == value


async def test_an_unknown_credential_is_an_error_and_nothing_is_sent(web: Web, client: WebClient) -> None:
    outcome = await send(client, "nobody", url=f"{web.url}/json")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("auth", False)
    assert web.asked == []


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ("listed", "`token` of the credential `listed` is a list"),
        ("mapped", "`value` of the credential `mapped` is a map"),
        ("scheme", "`scheme` of the credential `scheme` is a list"),
        ("other", "the credential `other` has no token, user or key to send. It needs `token`, `username` with"),
        ({"nothing": "hush"}, "the credential in `auth` has no token"),
        ({"password": True, "user": "ada"}, "`password` of the credential in `auth` is no text"),
    ],
)
async def test_a_credential_that_cannot_be_sent_is_an_error_and_nothing_is_sent(
    web: Web, client: WebClient, auth: Any, message: str
) -> None:
    outcome = await send(client, auth, url=f"{web.url}/json")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("auth", False)
    assert message in outcome.error.message
    assert "hush" not in outcome.error.message
    assert web.asked == []


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [(400, "client_error", False), (401, "auth", False), (403, "auth", False), (404, "not_found", False),
     (408, "timeout", True), (429, "rate_limit", True), (500, "server_error", True), (503, "server_error", True)],
)  # fmt: skip
async def test_a_refusal_is_an_error_with_the_body_kept(
    web: Web, client: WebClient, code: int, kind: str, retryable: bool
) -> None:
    web.retry_after = "3"
    outcome = await send(client, url=f"{web.url}/status/{code}?secret=1")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.code, outcome.error.retryable) == (kind, f"HTTP_{code}", retryable)
    assert outcome.error.retry_after == 3
    assert outcome.result["data"] == {"why": "asked"}
    assert outcome.as_data()["http"]["status"] == code
    assert "secret" not in outcome.error.message


@pytest.mark.parametrize(("code", "sent"), [(408, False), (429, False), (500, True), (502, True), (503, False)])
async def test_a_server_may_say_that_it_did_not_take_the_request_on(
    web: Web, client: WebClient, code: int, sent: bool
) -> None:
    outcome = await send(client, url=f"{web.url}/status/{code}", method="POST")
    assert outcome.error is not None
    assert outcome.error.sent is sent


@pytest.mark.parametrize(("path", "data"), [("/text", "grüße"), ("/bytes", "/wA="), ("/empty", None)])
async def test_a_body_that_is_not_json_is_text_or_base64(web: Web, client: WebClient, path: str, data: Any) -> None:
    assert (await send(client, url=web.url + path)).result["data"] == data


@pytest.mark.parametrize(
    ("content", "kind", "data"),
    [
        (b'{"n": NaN}', "application/json", '{"n": NaN}'),
        (b'{"n": 123456789012345678901234567890}', "application/json", {"n": "123456789012345678901234567890"}),
        (b'\xef\xbb\xbf{"n": 1}', "application/json", {"n": 1}),
        (b"[" * 100_000, "application/json", "[" * 100_000),
        ("grüße".encode("latin-1"), "text/plain; charset=ISO-8859-1", "grüße"),
        (b"x", "text/plain; charset=nonsense", "eA=="),
        (b"\xff", "text/plain", "/w=="),
    ],
)
async def test_odd_bodies_are_still_plain_data(content: bytes, kind: str, data: Any) -> None:
    assert await _data(content, kind) == data


async def test_a_redirect_is_followed_unless_told_not_to(web: Web, client: WebClient) -> None:
    assert (await send(client, url=f"{web.url}/redirect")).result["url"] == f"{web.url}/json"
    outcome = await send(client, url=f"{web.url}/redirect", follow_redirects=False)
    assert outcome.error is not None
    assert outcome.error.code == "HTTP_302"


async def test_nobody_at_home_may_be_retried_because_nothing_was_sent(client: WebClient) -> None:
    outcome = await send(client, url="http://127.0.0.1:1/x")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, outcome.error.sent) == ("connection", True, False)


async def test_a_failed_request_names_method_and_url_and_no_password(web: Web, client: WebClient) -> None:
    place = web.url.removeprefix("http://")
    refused = await send(client, url=f"http://ada:hush@{place}/status/409", params={"page": 2}, method="PUT")
    lost = await send(client, url=f"http://ada:hush@{place}/drop?page=2")
    gone = await send(client, url="http://ada:hush@127.0.0.1:1/x?page=2")
    unknown = await send(client, url="http://no-such-host.invalid/x")
    errors = [outcome.error for outcome in (refused, lost, gone, unknown)]
    messages = [error.message for error in errors if error is not None]
    assert messages[0] == f"PUT {web.url}/status/409 responded with 409 Conflict"
    assert messages[1].startswith(f"GET {web.url}/drop failed: ")
    assert messages[2] == "GET http://127.0.0.1:1/x failed: Connection refused"
    assert messages[3].startswith(
        "GET http://no-such-host.invalid/x failed: cannot resolve the host name no-such-host.invalid: "
    )
    assert refused.error is not None
    assert refused.error.details == {
        "method": "PUT",
        "url": f"{web.url}/status/409?page=2",
        "status": 409,
        "body": '{"why": "asked"}',
    }
    assert gone.error is not None
    assert gone.error.details == {"method": "GET", "url": "http://127.0.0.1:1/x?page=2"}


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"\xff\xd8\x00\x01", ""),
        (b"<html>\n\n  <p>\x1b[31mred</p>\n", "<html>\n  <p>�[31mred</p>"),
        (b"line\n" * 9, "line\nline\nline\nline\nline"),
        (b"x" * 900, "x" * 500 + "…"),
    ],
)
async def test_the_first_lines_of_a_body_are_bounded_and_printable(content: bytes, shown: str) -> None:
    assert excerpt(content, Secrets().text) == shown


async def test_a_connection_lost_after_sending_says_so(web: Web, client: WebClient) -> None:
    outcome = await send(client, url=f"{web.url}/drop", method="POST")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.sent) == ("connection", True)


async def test_a_read_that_takes_too_long_is_a_time_out(web: Web, client: WebClient) -> None:
    outcome = await send(client, spec={"timeout": {"read": 0.05}}, url=f"{web.url}/hang")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, outcome.error.sent) == ("timeout", True, True)


async def test_a_cancelled_request_ends_at_once(web: Web, client: WebClient) -> None:
    task = asyncio.create_task(send(client, url=f"{web.url}/hang"))
    while not web.asked:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_request_is_dropped_while_the_body_comes(
    web: Web, client: WebClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetl.tools.http.MOST_BYTES", 1 << 40)
    task = asyncio.create_task(send(client, url=f"{web.url}/endless"))
    while not web.asked:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(web.dropped.wait, 20)


async def test_a_body_without_end_is_cut_off_and_dropped(
    web: Web, client: WebClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetl.tools.http.MOST_BYTES", 1 << 20)
    outcome = await send(client, url=f"{web.url}/endless")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.retryable) == ("HTTP_TOO_LARGE", False)
    assert await asyncio.to_thread(web.dropped.wait, 20)


@pytest.mark.parametrize(
    ("told", "date", "seconds"),
    [
        ("120", None, 120),
        ("Wed, 21 Oct 2037 07:28:00 GMT", "Wed, 21 Oct 2037 07:27:30 GMT", 30),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None, 0),
        ("soon", None, None),
        ("nan", None, None),
        ("-5", None, None),
    ],
)
async def test_when_a_server_wants_to_be_asked_again(told: str, date: str | None, seconds: float | None) -> None:
    headers = {"retry-after": told} | ({"date": date} if date else {})
    assert retry_after(headers, 1_700_000_000_000) == seconds


async def test_nothing_of_one_request_stays_for_the_next(web: Web) -> None:
    web.headers["/login"] = {"Set-Cookie": "session=1; Path=/"}
    client = HttpClient()
    await send(client.get(), url=f"{web.url}/login")
    await send(client.get(), url=f"{web.url}/json")
    await client.close()
    assert "cookie" not in web.asked[1].headers


@pytest.mark.parametrize(
    ("auth", "given", "header"),
    [
        ("key", {}, "x-key"),
        ("token", {}, "authorization"),
        ("user", {}, "authorization"),
        (None, {"Authorization": "Bearer abc"}, "authorization"),
        (None, {"X-Vault-Token": "abc"}, "x-vault-token"),
        (None, {"Cookie": "session=abc"}, "cookie"),
        (None, {"Anything": "abc"}, "anything"),
    ],
)
@pytest.mark.parametrize("elsewhere", ["http://localhost:{port}", "http://127.0.0.1:{other}"])
async def test_a_redirect_to_another_origin_carries_no_header_of_the_task(
    web: Web, auth: str | None, given: dict[str, str], header: str, elsewhere: str
) -> None:
    with closing(Web()) as other:
        ports = [one.url.rpartition(":")[2] for one in (web, other)]
        web.headers["/away"] = {"Location": elsewhere.format(port=ports[0], other=ports[1]) + "/json"}
        web.headers["/here"] = {"Location": "/json"}
        client = HttpClient()
        await send(client.get(), auth, url=f"{web.url}/here", headers=given)
        outcome = await send(client.get(), auth, url=f"{web.url}/away", headers=given | {"Accept": "text/x"})
        await client.close()
        assert outcome.status == "ok"
        asked = [*web.asked, *other.asked]
    assert [header in one.headers for one in asked] == [True, True, True, False]
    assert asked[3].headers["accept"] == "text/x"


async def test_certificates_are_checked_as_the_task_says(web: Web, tmp_path: Path) -> None:
    client = HttpClient()
    assert client.get() is client.get()
    assert client.get(verify=False) is not client.get()
    for name, text in (("none.pem", None), ("empty.pem", ""), ("odd.pem", "no certificate")):
        if text is not None:
            (tmp_path / name).write_text(text)
        broken = await send(client.get, url=f"{web.url}/json", verify=str(tmp_path / name))
        assert broken.error is not None
        assert broken.error.code == "HTTP_VERIFY"
    await client.close()
    assert web.asked == []


@pytest.mark.parametrize("url", ["nonsense", "ftp://127.0.0.1/x", "http://[::1", ""])
async def test_an_address_that_is_none_is_an_error_outcome(client: WebClient, url: str) -> None:
    outcome = await send(client, url=url)
    assert outcome.status == "error"


async def test_the_certificate_is_checked_unless_told_not_to_in_either_spelling(web: Web) -> None:
    clients = HttpClient()
    asked: list[Any] = []

    def get(*ways: Any) -> WebClient:
        asked.extend(ways)
        return clients.get()

    for name in ("verify", "verify_ssl"):
        for given in (False, "false", True, "True"):
            fields: dict[str, Any] = {name: given}
            assert (await send(get, url=f"{web.url}/json", **fields)).status == "ok"
    assert asked == [False, False, True, True] * 2
    await clients.close()
