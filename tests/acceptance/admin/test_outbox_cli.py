"""`noetl outbox` and `kind: outbox`: a run delivers its messages or keeps them."""

from __future__ import annotations

import json
import os

import pytest

from tests.acceptance.running import Folder, until
from tests.tools.web import Web


def tells(folder: Folder, url: str) -> str:
    tool = f"{{ kind: outbox, topic: orders, url: '{url}', args: {{ id: 7 }} }}"
    return folder.playbook(f"- step: tell\n  tool: {tool}")


def test_a_run_delivers_what_it_wrote_down(folder: Folder, web: Web) -> None:
    ran = folder.call("run", tells(folder, f"{web.url}/json"))
    assert ran.code == 0, ran.err
    assert "outbox: 1 delivered" in ran.err
    assert [(asked.method, asked.body) for asked in web.asked] == [("POST", b'{"id":7}')]
    listed = folder.call("outbox", "list", "--json")
    [row] = [json.loads(line) for line in listed.out.splitlines()]
    assert (row["state"], row["attempts"], row["topic"]) == ("delivered", 1, "orders")


def test_messages_go_out_while_the_run_goes_on(folder: Folder, web: Web) -> None:
    """The same run retries a failed message and does not end before it arrives."""
    web.retry_after = "0"
    tool = f"{{ kind: outbox, topic: orders, url: '{web.url}/status/503', args: {{ id: 7 }} }}"
    told = folder.playbook(
        f"- step: tell\n  tool: {tool}\n  next: stay\n- step: stay\n  tool: {{ kind: wait, signal: go }}"
    )
    with folder.started("run", told, "--wait") as running:
        until(lambda: len(web.asked) >= 2, "the message was tried twice")
        assert folder.call("signal", "last", "go").code == 0
        assert running.wait(30) == 0
        assert running.stderr is not None
        said = running.stderr.read().decode()
    assert "outbox: 0 delivered, 1 pending: send them with `noetl outbox drain`" in said


def test_what_could_not_go_waits_and_is_sent_again(folder: Folder, web: Web) -> None:
    ran = folder.call("run", tells(folder, f"{web.url}/status/503"))
    assert ran.code == 0, ran.err
    assert "0 delivered, 1 pending" in ran.err
    assert "HTTP_503" in folder.call("outbox", "list").out
    shown = json.loads(folder.call("outbox", "show", "1").out)
    assert (shown["state"], shown["payload"]) == ("pending", {"id": 7})
    assert "pending again" in folder.call("outbox", "retry", "1").err
    assert "0 delivered, 1 pending" in folder.call("outbox", "drain").err
    assert len(web.asked) == 2
    assert len({asked.headers["idempotency-key"] for asked in web.asked}) == 1
    assert folder.call("outbox", "discard", "1", "--reason", "enough").code == 0
    assert "0 pending, 0 dead" in folder.call("outbox", "list", "--state", "pending").err


def test_what_is_refused_for_good_is_dead(folder: Folder, web: Web) -> None:
    ran = folder.call("run", tells(folder, f"{web.url}/status/400"))
    assert "1 dead" in ran.err
    assert "HTTP_400" in folder.call("outbox", "list", "--state", "dead").out
    folder.call("run", tells(folder, f"{web.url}/status/400"))
    again = folder.call("outbox", "retry", "--dead")
    assert (again.code, again.err.count("pending again")) == (0, 2)
    assert "0 delivered, 2 dead" in folder.call("outbox", "drain").err
    gone = folder.call("outbox", "discard", "--dead", "--reason", "enough")
    assert gone.err.count("discarded") == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fly"], "No such command 'fly'"),
        (["show"], "Missing argument 'NUMBER'"),
        (["retry"], "or --dead for every dead message"),
        (["retry", "1", "--dead"], "or --dead for every dead message"),
        (["show", "99"], "No message 99"),
        (["retry", "99"], "No pending or dead message 99"),
        (["discard", "1"], "Add --reason TEXT"),
        (["list", "--state", "odd"], "Unknown state 'odd'"),
    ],
)
def test_what_cannot_be_done_is_told(folder: Folder, arguments: list[str], told: str) -> None:
    assert folder.call("token", "create", "--role", "viewer").code == 0  # makes the store
    ran = folder.call("outbox", *arguments)
    assert ran.code == 2
    assert told in ran.err
    assert "Traceback" not in ran.err


PIGEON = """
from noetl import RetryableError
from noetl.model.outcome import ok


async def deliver(message, context):
    if message.attempts == 1:
        raise RetryableError("it rains")
    with open("loft.txt", "a") as file:
        file.write(f"{message.address} {message.payload} {context.idempotency_key}\\n")
    return ok()
"""


def test_a_package_brings_another_target(folder: Folder) -> None:
    info = folder.path / "site" / "pigeon-1.0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "pigeon.py").write_text(PIGEON)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeon\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[noetl.outbox]\npigeon = pigeon:deliver\n")
    path = f"{info.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    file = folder.playbook("- { step: a, tool: { kind: outbox, topic: t, target: pigeon, url: loft, payload: [1] } }")
    ran = folder.call("run", file, PYTHONPATH=path, NOETL_OUTBOX_BASE_MS="0")
    assert ran.code == 0, ran.err
    assert "outbox: 1 delivered" in ran.err
    [row] = [json.loads(line) for line in folder.call("outbox", "list", "--json").out.splitlines()]
    assert (row["state"], row["attempts"]) == ("delivered", 2)
    assert folder.lines("loft.txt") == [f"loft [1] {row['key']}"]
