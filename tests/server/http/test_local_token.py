"""`noetl up` on loopback: its user needs to do nothing, other users are outside."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from noetl import SyncClient
from noetl.client.local_server import local_server, token_folder
from noetl.worker.processes.sandbox import landlock_version
from tests.acceptance.run import noetl
from tests.server.serving import ONE, PATIENCE_S, playbook, process
from tests.services import free_port


def others(url: str, path: str, **more: str) -> int:
    """Return the status that a request without the token gets."""
    return httpx.get(f"{url}{path}", headers=more).status_code


def test_without_the_token_nothing_but_health_is_answered(tmp_path: Path) -> None:
    with process(tmp_path, "up", auth="auto") as (url, _up):
        for path in ("/api/executions", "/api/tokens", "/metrics", "/api/workers", "/api/credentials"):
            assert others(url, path) == 401
            assert others(url, path, Authorization="Bearer noetl_local_x") == 401
        assert httpx.post(f"{url}/api/execute", json={"path": "x"}).status_code == 401
        assert others(url, "/health") == 200
        assert "No executions" not in httpx.get(f"{url}/").text
        own = {"Authorization": f"Bearer {local_server(url).token}"}
        assert others(url, "/api/tokens", **own) == 200


def test_the_commands_of_its_user_find_the_token(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(ONE)
    with process(tmp_path, "up", auth="auto") as (url, _up):
        for address in (url, url.replace("127.0.0.1", "localhost")):
            assert noetl("register", "one.yaml", "--server", address, cwd=tmp_path).code == 0
            ran = noetl("exec", "test/one", "--set", "n=42", "--wait", "--server", address, cwd=tmp_path)
            assert (ran.code, ran.out.strip()) == (0, "42"), ran.err
        assert "completed" in noetl("status", "last", "--server", url, cwd=tmp_path).out
        assert noetl("events", "last", "--server", url, cwd=tmp_path).code == 0
        assert noetl("token", "show", "--server", url, cwd=tmp_path).out.strip() == local_server(url).token
        with SyncClient(url) as client:
            assert len(client.executions().executions) == 2
        stranger = noetl("runs", "--server", url, cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "other"))
        assert stranger.code != 0
        assert "requires a token" in stranger.err
        assert "noetl token show" in stranger.err


def test_two_servers_have_two_tokens_and_a_worker_uses_both(tmp_path: Path) -> None:
    with (
        process(tmp_path, "serve", auth="auto") as (one, _a),
        process(tmp_path, "serve", auth="auto") as (two, _b),
        worker(tmp_path, f"{one},{two}") as at_work,
    ):
        assert local_server(one).token != local_server(two).token
        with SyncClient([two, one]) as client:
            path = client.register(ONE).path
            assert client.wait(client.execute(path).execution_id).status == "completed"
        assert at_work.poll() is None


@contextmanager
def worker(folder: Path, urls: str) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "noetl", "worker", "--server", urls]
    with subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        try:
            while "noetl: worker" not in (line := started.stderr.readline()):
                assert line, "the worker ended"
            yield started
        finally:
            started.kill()
            started.stderr.read()


@contextmanager
def up_at(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "noetl", "serve", "--port", str(port)]
    with subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        try:
            line = started.stderr.readline()
            assert "http://" in line, line
            yield started
        finally:
            started.kill()
            started.stderr.read()


def test_after_a_kill_and_a_restart_clients_and_workers_go_on_with_the_new_token(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with SyncClient(url) as client, up_at(tmp_path, port) as server, worker(tmp_path, url) as at_work:
        path, first = client.register(ONE).path, local_server(url).token
        server.send_signal(signal.SIGKILL)
        server.wait(PATIENCE_S)
        assert local_server(url).token == first  # left behind
        with up_at(tmp_path, port):
            assert local_server(url).token not in (None, first)
            old = httpx.get(f"{url}/api/executions", headers={"Authorization": f"Bearer {first}"})
            assert old.status_code == 401
            assert client.wait(client.execute(path).execution_id).status == "completed"
            assert at_work.poll() is None


def test_a_stale_file_is_named_in_the_error(tmp_path: Path) -> None:
    with process(tmp_path, "serve", auth="auto") as (url, _server):
        file = local_server(url).file
        assert file is not None
        file.write_text("noetl_local_of_before")
        ran = noetl("runs", "--server", url, cwd=tmp_path)
        assert ran.code == 1
        assert "The token is not known" in ran.err
        assert str(file) in ran.err


def test_the_file_goes_with_the_server(tmp_path: Path) -> None:
    with process(tmp_path, "up", auth="auto") as (url, up):
        file = local_server(url).file
        assert file is not None
        assert others(url, "/health") == 200
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 0
        assert not file.exists()
        assert noetl("token", "show", "--server", url, cwd=tmp_path).code == 2


def test_the_printed_link_signs_a_browser_in(tmp_path: Path) -> None:
    with process(tmp_path, "up", auth="auto") as (url, up):
        found = re.search(rf"{url}/\?token=\S+", up.stderr.readline())
        assert found is not None
        with httpx.Client(base_url=url) as browser:
            answer = browser.get(found[0])
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
            assert "HttpOnly" in answer.headers["set-cookie"]
            assert "SameSite=Strict" in answer.headers["set-cookie"]
            assert str(local_server(url).token) not in answer.headers["set-cookie"]
            assert browser.get("/").status_code == 200
            assert browser.get("/api/executions").status_code == 200
            me = browser.get("/api/me").json()
            assert (me["name"], me["role"]) == ("browser of local", "admin")
            assert browser.post("/api/catalog", json={"content": ONE}).status_code == 403  # a page of another site
            csrf = {"X-CSRF-Token": me["csrf"]}
            assert browser.post("/api/catalog", json={"content": ONE}, headers=csrf).status_code == 201
        assert httpx.get(f"{url}/?token=wrong").status_code == 401


def test_switched_off_it_asks_for_nothing_and_leaves_no_file(tmp_path: Path) -> None:
    before = set(token_folder().glob("*")) if token_folder().is_dir() else set()
    with process(tmp_path, "up", "--auth", "none", auth="auto") as (url, _up):
        assert others(url, "/api/tokens") == 200
        assert others(url, "/api/tokens", **{"X-Forwarded-For": "192.0.2.1"}) == 401
        assert set(token_folder().glob("*")) == before


def test_api_tokens_work_beside_it(tmp_path: Path) -> None:
    viewer = noetl("token", "create", "--role", "viewer", cwd=tmp_path).out.strip()
    with process(tmp_path, "up", auth="auto") as (url, _up):
        assert others(url, "/api/executions", Authorization=f"Bearer {viewer}") == 200
        assert others(url, "/api/tokens", Authorization=f"Bearer {viewer}") == 403
        ran = noetl("token", "list", "--server", url, cwd=tmp_path, NOETL_TOKEN=viewer)
        assert "requires admin" in ran.err  # a given token comes first


READS = """import os
try:
    result = open(file).read()
except OSError:
    result = 'hidden'
"""


@pytest.mark.parametrize("sandbox", ["none", "landlock"])
def test_tasks_in_a_sandbox_cannot_read_the_token(tmp_path: Path, sandbox: str) -> None:
    if sandbox == "landlock" and not landlock_version():
        pytest.skip("this kernel has no Landlock")
    with process(tmp_path, "up", auth="auto", environment={"NOETL_SANDBOX": sandbox}) as (url, _up):
        own = local_server(url)
        tool = json.dumps({"kind": "python", "input": {"file": str(own.file)}, "code": READS})
        with SyncClient(url) as client:
            path = client.register(playbook(f"  - step: one\n    tool: {tool}\n")).path
            ended = client.wait(client.execute(path).execution_id)
        assert ended.result == ("hidden" if sandbox == "landlock" else f"{own.token}\n"), ended
