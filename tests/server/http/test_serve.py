"""Real processes: `noetl serve`, `noetl up`, `noetl token`; start, use, stop."""

from __future__ import annotations

import json
import re
import signal
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.acceptance.run import noetl
from tests.acceptance.running import until
from tests.server.serving import FAILS, ONE, PATIENCE_S, playbook, process
from tests.services import postgres


def run_one(url: str) -> str:
    """Register, start and wait; gives the result."""
    with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        path = client.post("/api/catalog", json={"content": ONE}).json()["path"]
        started = client.post("/api/execute", json={"path": path, "payload": {"n": 42}}).json()["execution_id"]
        with client.stream("GET", f"/api/executions/{started}/events/stream") as answer:
            for line in answer.iter_lines():
                if line == "event: end":
                    break
        return str(client.get(f"/api/executions/{started}").json()["result"])


def test_up_serves_and_works_and_stops_in_order(tmp_path: Path) -> None:
    with process(tmp_path, "up") as (url, up):
        assert httpx.get(f"{url}/health").json()["status"] == "ok"
        assert run_one(url) == "42"
        assert [one["status"] for one in httpx.get(f"{url}/api/workers").json()["workers"]] == ["ready"]
        metrics = httpx.get(f"{url}/metrics").text
        assert 'noetl_executions_started_total{workflow="test/one"} 1.0' in metrics
        assert 'noetl_executions_completed_total{status="ok",workflow="test/one"} 1.0' in metrics
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 0
    with process(tmp_path, "up") as (url, _up):
        assert len(httpx.get(f"{url}/api/executions").json()["executions"]) == 1


GATED = playbook(
    "  - step: gate\n    tool:\n      kind: python\n      code: |\n"
    "        import os, time\n        open('started', 'a').write('x')\n"
    "        while not os.path.exists('open'):\n            time.sleep(0.01)\n        result = 'through'\n",
    "gated",
)


def start_gated(url: str, folder: Path) -> str:
    """Start a task that runs until the file `open` exists; return the execution's id."""
    with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        path = client.post("/api/catalog", json={"content": GATED}).json()["path"]
        started = str(client.post("/api/execute", json={"path": path}).json()["execution_id"])
    until((folder / "started").exists, "the start of the task")
    return started


def test_the_worker_of_up_is_counted_with_what_it_runs(tmp_path: Path) -> None:
    with process(tmp_path, "up") as (url, _up):
        start_gated(url, tmp_path)
        until(lambda: [one["active"] for one in httpx.get(f"{url}/api/workers").json()["workers"]] == [1], "the count")
        assert "noetl_workers 1.0" in httpx.get(f"{url}/metrics").text
        (tmp_path / "open").touch()


def test_a_dead_letter_is_a_line_in_the_log_from_the_level_warning_on(tmp_path: Path) -> None:
    with process(tmp_path, "up", environment={"NOETL_LOG_LEVEL": "warning"}) as (url, up):
        path = httpx.post(f"{url}/api/catalog", json={"content": FAILS}).json()["path"]
        httpx.post(f"{url}/api/execute", json={"path": path})
        assert re.fullmatch(
            r"\S+Z WARNING task_dlq message_id=\S+ execution_id=\S+ .* attempt=1 error_class=\S+ error=.*zero.*\n",
            up.stderr.readline(),
        )


def test_the_worker_of_up_drains_on_request(tmp_path: Path) -> None:
    with process(tmp_path, "up") as (url, _up):
        [worker] = httpx.get(f"{url}/api/workers").json()["workers"]
        drained = noetl("worker", "drain", worker["worker_id"], "--server", url, cwd=tmp_path)
        assert drained.code == 0, drained.err
        path = httpx.post(f"{url}/api/catalog", json={"content": ONE}).json()["path"]
        late = httpx.post(f"{url}/api/execute", json={"path": path, "wait_ms": 500}, timeout=PATIENCE_S).json()
        assert late["status"] == "running"
        listed = noetl("worker", "list", "--server", url, cwd=tmp_path)
        assert " draining " in listed.out


def test_the_worker_of_up_finishes_what_runs_before_it_stops(tmp_path: Path) -> None:
    with process(tmp_path, "up") as (url, up):
        started = start_gated(url, tmp_path)
        up.send_signal(signal.SIGTERM)
        assert up.stderr.readline() == "noetl: stopping, 1 tasks running\n"
        (tmp_path / "open").touch()
        assert up.wait(PATIENCE_S) == 0
    found = json.loads(noetl("status", started, "--json", cwd=tmp_path).out)
    assert (found["status"], found["result"]) == ("completed", "through")
    assert (tmp_path / "started").read_text() == "x"


def test_what_the_worker_of_up_cannot_finish_is_continued_at_once(tmp_path: Path) -> None:
    long = {"NOETL_LEASE_SECONDS": "3600"}
    with process(tmp_path, "up", "--grace", "0", environment=long) as (url, up):
        started = start_gated(url, tmp_path)
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 0
    (tmp_path / "open").touch()
    with process(tmp_path, "up", environment=long) as (url, _up):
        ended = ("completed", "failed")
        until(lambda: httpx.get(f"{url}/api/executions/{started}").json()["status"] in ended, "the end")
        assert httpx.get(f"{url}/api/executions/{started}").json()["result"] == "through"


def test_a_request_that_is_under_way_is_answered_before_the_server_stops(tmp_path: Path) -> None:
    with process(tmp_path, "serve") as (url, server), httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        client.post("/api/worker/hello", json={"worker": "w"})

        body = json.dumps({"id": "c", "worker": "w", "wait_s": 30}).encode()
        place = urlsplit(url)
        head = f"POST /api/worker/claim HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
        with socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S) as asking:
            asking.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            for _ in range(2):  # what was sent before this is answered has been read
                assert client.get("/health").status_code == 200
            server.send_signal(signal.SIGTERM)
            answer = asking.makefile("rb").read()
        assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"type": "leases", "id": "c"}
        assert server.wait(PATIENCE_S) == 0


def test_what_others_can_reach_does_not_start_without_tokens(tmp_path: Path) -> None:
    for arguments in (("--host", "0.0.0.0"), ("--host", "0.0.0.0", "--auth", "none"), ("--auth", "token")):
        ran = noetl("serve", *arguments, "--port", "0", cwd=tmp_path, stdin=None)
        assert ran.code == 2
        assert "noetl token create" in ran.err


def test_tokens_are_made_on_the_command_line_and_used(tmp_path: Path) -> None:
    ran = noetl(
        "token", "create", "--role", "admin", "--name", "me", "--expires", "1h", "--json", cwd=tmp_path, stdin=None
    )
    made = json.loads(ran.out)
    plain = noetl("token", "create", "--role", "viewer", cwd=tmp_path, stdin=None)
    assert plain.out.startswith("noetl_")
    with process(tmp_path, "serve", "--auth", "token") as (url, _server):
        assert httpx.get(f"{url}/health").status_code == 200
        assert httpx.get(f"{url}/api/tokens").status_code == 401
        headers = {"Authorization": f"Bearer {made['secret']}"}
        assert len(httpx.get(f"{url}/api/tokens", headers=headers).json()["tokens"]) == 2
        revoked = noetl("token", "revoke", made["token_id"], cwd=tmp_path, stdin=None)
        assert revoked.code == 0, revoked.err
    listed = noetl("token", "list", cwd=tmp_path, stdin=None)
    assert "revoked" in listed.out
    assert made["secret"] not in listed.out
    for bad in (
        ("create",),
        ("create", "--role", "king"),
        ("create", "--role", "admin", "--expires", "soon"),
        ("what",),
        ("revoke", "x"),
    ):
        assert noetl("token", *bad, cwd=tmp_path, stdin=None).code == 2


def test_an_address_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = noetl("serve", "--port", str(taken.getsockname()[1]), cwd=tmp_path, stdin=None)
    assert ran.code == 2
    assert "--port" in ran.err


def test_up_on_postgresql(tmp_path: Path) -> None:
    with postgres() as address, process(tmp_path, "up", "--postgres", address) as (url, up):
        assert run_one(url) == "42"
        answer = httpx.put(f"{url}/api/credentials/x", json={"data": {}})
        assert (answer.status_code, "NOETL_ENCRYPTION_KEY" in answer.json()["fix"]) == (503, True)
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 0


@pytest.mark.asyncio
async def test_two_servers_share_one_store(tmp_path: Path) -> None:
    with process(tmp_path, "serve") as (one, _a), process(tmp_path, "up") as (two, _b):
        async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
            path = (await client.post(f"{one}/api/catalog", json={"content": ONE})).json()["path"]
            ids = [
                (await client.post(f"{one}/api/execute", json={"path": path})).json()["execution_id"] for _ in range(5)
            ]
            for name in ids:
                async with client.stream("GET", f"{one}/api/executions/{name}/events/stream") as answer:
                    async for line in answer.aiter_lines():
                        if line == "event: end":
                            break
                assert (await client.get(f"{two}/api/executions/{name}")).json()["status"] == "completed"
