"""Every runbook, followed as printed at a server that is in the state of its page."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from noetl.observe.series import SERIES
from tests.acceptance.running import until
from tests.acceptance.servers.test_doctor_cli import fill, mounted
from tests.docs.pages import ROOT, Block, blocks
from tests.docs.reader import Reader, reader
from tests.server.serving import playbook
from tests.services import PostgresServer, free_port, postgres_server

FOLDER = ROOT / "docs" / "how-to" / "runbooks"
PROBE = playbook("  - step: probe\n    tool: {kind: noop, result: {ok: true}}\n", "probe").replace(
    "test/probe", "ops/probe"
)
GATED = playbook(
    "  - step: ask\n    tool: {kind: noop}\n    next: [{step: approve}]\n"
    "  - step: approve\n    spec: {policy: {admit: {rules: [{when: '{{ ctx.approved | default(false) }}', then: {allow: true}}]}}}\n"
    "    tool: {kind: noop}\n",
    "gated",
)
SLEEPY = "import time\ntime.sleep(0.2)\nresult = 1"
MANY = playbook(
    "  - step: many\n    loop: {in: '{{ range(400) | list }}', iterator: n, spec: {mode: parallel, max_in_flight: 32}}\n"
    f"    tool: {{kind: python, code: {json.dumps(SLEEPY)}}}\n",
    "many",
)
POST = playbook(
    "  - step: post\n    tool: {kind: http, method: POST, url: 'WHERE/orders', body: {n: '{{ workload.n }}'}}\n",
    "post",
    workload={"n": 1},
    executor={"spec": {"retries": {"plugin": {"max_attempts": 1}}}},
)


def followed(name: str) -> list[Block]:
    """Return the blocks of a runbook."""
    page = FOLDER / name
    return list(blocks(f"docs/how-to/runbooks/{name}", page.read_text(encoding="utf-8")))


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Reader]:
    """Yield an operator on an empty machine with a free port."""
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    place = {"NOETL_PORT": port, "NOETL_SERVER_URL": url, "NOETL_HOME": str(tmp_path / "folder" / ".noetl")}
    with reader(tmp_path, {"http://127.0.0.1:8082": url}, **place) as found:
        (found.folder / "probe.yaml").write_text(PROBE)
        yield found


def told(at: Reader, command: str) -> Any:
    """Run a command that prints JSON, and return it."""
    at.run(command, "the test")
    return json.loads(at.printed.splitlines()[-1])


def register(at: Reader, content: str) -> str:
    (at.folder / "play.yaml").write_text(content)
    at.run("noetl register play.yaml", "the test")
    return str(re.findall(r"path: ([\w/]+)", content)[0])


def start(at: Reader, content: str, *more: str) -> str:
    """Register and start a playbook; return the execution."""
    path = register(at, content)
    at.run(f"noetl exec {path} --json {' '.join(more)}", "the test")
    return str(json.loads(at.printed.splitlines()[-1])["execution_id"])


def status(at: Reader, execution: str) -> dict[str, Any]:
    found: dict[str, Any] = told(at, f"noetl status {execution} --json")
    return found


def put(at: Reader, **names: str) -> None:
    """Fill in the names that a page uses."""
    at.replaced = {**at.replaced, **names}


@contextmanager
def target() -> Iterator[tuple[str, Callable[[int], None], list[str]]]:
    """Serve HTTP with a status that tests set; yield its address and what it got."""
    answers, seen = [503], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.path)
            self.send_response(answers[-1])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", answers.append, seen
    finally:
        server.shutdown()
        server.server_close()


def test_every_runbook_is_followed_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert {page.name for page in FOLDER.glob("*.md")} == set(re.findall(r'followed\("([\w-]+\.md)"\)', text))


def test_runbooks_name_series_that_there_are() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md"))
    names = set(re.findall(r"\b(?:noetl_\w+|parked_steps_\w+|dlq_entries)\b", re.sub(r"\^noetl_\([^)]*\)", "", text)))
    assert names
    assert names <= set(SERIES)


def test_dead_letters(at: Reader) -> None:
    inspect, replay, patch, discard = (block for block in followed("dead-letters.md") if block.info == ("sh",))
    at.run("noetl up", "the test")
    with target() as (address, answer, seen):
        failed = [start(at, POST.replace("WHERE", address), "--set", f"n={n}", "--wait || true") for n in range(3)]
        letters = told(at, "noetl dlq list --json | tr '\\n' ' ' | sed 's/^/[/;s/} {/},{/g;s/ $/]/'")
        assert {one["execution_id"] for one in letters} == set(failed)
        poisoned, patched, _ = (one["message_id"] for one in letters)
        put(at, LETTER_ID=patched, POISONED_ID=poisoned, FINGERPRINT=letters[0]["fingerprint"])
        at.follow(inspect)
        assert "503" in at.printed
        answer(200)
        at.follow(discard)
        put(at, **{"https://new.example.com/orders": f"{address}/new"})
        at.follow(patch)
        assert seen[-1] == "/new"
        at.follow(replay)
        assert [path for path in seen if path == "/orders"] == ["/orders"] * 4
        at.run("noetl dlq list --json", "the test")
        assert at.printed == ""


def test_stuck_execution(at: Reader) -> None:
    look, force = (block for block in followed("stuck-execution.md") if block.info == ("sh",))
    at.run("noetl up", "the test")
    execution = start(at, GATED)
    until(lambda: status(at, execution)["status"] == "waiting", "the parked step")
    put(at, EXECUTION_ID=execution, STEP="approve")
    at.follow(look)
    steps = json.loads(at.printed)["steps"]
    assert steps["approve"] == {"done": 0, "failed": 0, "skipped": 0, "running": 0, "parked": 1}
    assert steps["ask"] == {"done": 1, "failed": 0, "skipped": 0, "running": 0, "parked": 0}
    at.follow(force)
    until(lambda: status(at, execution)["status"] == "completed", "the end")
    assert status(at, execution)["result"] == {"approved": True}


def test_runaway_parallelism(at: Reader) -> None:
    see, pause, drain, go_on = (block for block in followed("runaway-parallelism.md") if block.info == ("sh",))
    at.run("noetl serve", "the test")
    at.run("noetl worker --capacity 8", "the test")
    execution = start(at, MANY)
    [worker] = json.loads(_printed(at, "noetl top --json"))["workers"]
    put(at, EXECUTION_ID=execution, WORKER_ID=worker["worker_id"])
    at.follow(see)
    at.follow(pause)
    assert status(at, execution)["status"] == "paused"
    at.follow(drain)
    at.follow(go_on)
    until(lambda: status(at, execution)["status"] == "completed", "the end on the new worker")
    assert status(at, execution)["steps"]["many"]["done"] == 1


def _printed(at: Reader, command: str) -> str:
    at.run(command, "the test")
    return at.printed


def test_worker_loss(at: Reader) -> None:
    look, replace, check = (block for block in followed("worker-loss.md") if block.info == ("sh",))
    at.run("noetl serve", "the test")
    at.run("noetl worker --capacity 2", "the test")
    at.run("noetl register probe.yaml", "the test")
    execution = start(at, MANY.replace("range(400)", "range(12)"))
    until(lambda: status(at, execution)["steps"]["many"]["running"] == 1, "the loop")
    _, lost = at.running.pop()
    os.kill(lost.pid, signal.SIGKILL)
    lost.wait()
    put(at, EXECUTION_ID=execution)
    at.follow(look)
    at.follow(replace)
    at.follow(check)
    until(lambda: status(at, execution)["status"] == "completed", "the end on the new worker")


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    with postgres_server(fsync="off", shared_buffers="32MB") as server:
        server.create("noetl")
        yield server


def test_database_loss(at: Reader, database: PostgresServer) -> None:
    look, check = (block for block in followed("database-loss.md") if block.info == ("sh",))
    at.variables["NOETL_DB_URL"] = database.address("noetl")
    at.run("noetl up", "the test")
    at.run("noetl register probe.yaml", "the test")
    database.stop()
    at.follow(look)
    assert "PROBLEM  store" in at.printed
    database.start()
    at.follow(check)
    at.run("noetl exec ops/probe --wait", "the test")


def test_slow_engine(at: Reader) -> None:
    look, explain = (block for block in followed("slow-engine.md") if block.info == ("sh",))
    at.variables["NOETL_CAPACITY"] = "1"
    at.run("noetl up", "the test")
    execution = start(at, MANY.replace("range(400)", "range(40)"))
    for _ in range(5):
        start(at, MANY.replace("range(400)", "range(40)"))
    put(at, EXECUTION_ID=execution)
    at.follow(look)
    assert re.search(r'noetl_queue_depth\{pool="default"[^}]*\} [1-9]', at.printed), at.printed
    at.follow(explain)
    at.run(f"noetl cancel {execution}", "the test")


def test_full_disk(at: Reader) -> None:
    look, ready, prune = (block for block in followed("full-disk.md") if block.info == ("sh",))
    home = Path(at.variables["NOETL_HOME"])
    with mounted(home, "100m"):
        at.run("noetl up", "the test")
        at.run("noetl register probe.yaml", "the test")
        at.run("noetl exec ops/probe --wait", "the test")
        fill(home / "filler")
        code = ["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", f"{at.variables['NOETL_SERVER_URL']}/ready"]
        until(lambda: subprocess.run(code, capture_output=True, check=False).stdout == b"503", "503 of /ready")
        at.follow(look)
        (home / "filler").unlink()
        at.follow(ready)
        at.follow(prune)
        at.run("noetl exec ops/probe --wait", "the test")
        at.stop()


def test_leaked_secret(at: Reader) -> None:
    token, credential, key = (block for block in followed("leaked-secret.md") if block.info == ("sh",))
    at.run("noetl up", "the test")
    at.run("noetl token create --role operator --name ci > leaked.token", "the test")
    leaked = (at.folder / "leaked.token").read_text().strip()
    answered = (
        f"curl -s -o {os.devnull} -w '%{{http_code}}' -H 'Authorization: Bearer {leaked}' $NOETL_SERVER_URL/api/me"
    )
    assert _printed(at, answered) == "200"
    [row] = [one for one in _printed(at, "noetl token list").splitlines() if " ci " in f" {one} "]
    put(at, TOKEN_ID=row.split()[0])
    at.follow(token)
    until(lambda: _printed(at, answered) == "401", "the refusal of the leaked token")
    at.run("""noetl credential put orders_api --kind bearer --data '{"token": "old-secret"}'""", "the test")
    (at.folder / "orders.json").write_text('{"token": "new-secret"}')
    at.follow(credential)
    old = (Path(at.variables["NOETL_HOME"]) / "key").read_text()
    at.follow(key)
    assert (Path(at.variables["NOETL_HOME"]) / "key").read_text() != old
