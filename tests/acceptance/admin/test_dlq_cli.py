"""`noetl dlq` on a local store: groups, patch, bulk replay, exact final count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.run import Ran, noetl
from tests.server.api.test_dlq import loop, poison
from tests.tools.web import Web


def run(folder: Path, content: str) -> Ran:
    (folder / "play.yaml").write_text(content, encoding="utf-8")
    return noetl("run", "play.yaml", "--json", cwd=folder)


def found(folder: Path, *arguments: str) -> list[dict[str, object]]:
    lines = noetl("dlq", *arguments, "--json", cwd=folder).out.splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("count", [1_100, pytest.param(10_000, marks=pytest.mark.chaos)])
def test_many_items_with_three_causes(tmp_path: Path, count: int) -> None:
    causes = poison(count)
    ran = run(tmp_path, loop(count))
    assert ran.code == 5, ran.err
    execution = json.loads(ran.out)["execution_id"]
    groups = found(tmp_path, "groups")
    assert {str(group["last_error"]).partition(":")[0]: group["count"] for group in groups} == causes
    assert all(causes.values())
    for group in groups:
        name = str(group["fingerprint"])
        dry = noetl("dlq", "replay", "--group", name, "--patch", "input.strict=false", "--dry-run", cwd=tmp_path)
        assert f"{group['count']} dead letters would be replayed" in dry.out
        done = noetl("dlq", "replay", "--group", name, "--patch", "input.strict=false", cwd=tmp_path)
        assert done.out == f"{group['count']} dead letters replayed; {group['count']} repaired, 0 failed again\n", (
            done.err
        )
        assert done.code == 0
    assert found(tmp_path, "list") == []
    assert len(found(tmp_path, "list", "--status", "replayed")) == sum(causes.values())
    status = json.loads(noetl("status", execution, "--json", cwd=tmp_path).out)
    assert status["status"] == "completed"
    assert status["result"]["stats"] == {"total": count, "succeeded": count, "failed": 0, "skipped": 0}
    assert noetl("admin", "rebuild", "--check", cwd=tmp_path).code == 0


def test_one_letter_from_list_to_discard(tmp_path: Path) -> None:
    assert run(tmp_path, loop(8)).code == 5
    (row,) = found(tmp_path, "list")
    name = str(row["message_id"])
    listed = noetl("dlq", "list", "--status", "pending", "--limit", "100", cwd=tmp_path)
    assert name in listed.out
    assert "work[7] | python | 1 attempt | ValueError: row 7 is bad" in listed.out
    assert (
        "1 item of work#1 failed for good; see `noetl dlq groups --execution "
        in noetl("explain", "last", cwd=tmp_path).out
    )
    shown = noetl("dlq", "show", name, cwd=tmp_path).out
    for text in ("loop_index       7", '"strict": true', "Traceback (most recent call last)", "context_excerpt"):
        assert text in shown
    again = noetl("dlq", "replay", name, cwd=tmp_path)
    assert (again.code, again.out) == (1, "1 dead letter replayed; 0 repaired, 1 failed again\n")
    assert "2 attempts" in noetl("dlq", "list", cwd=tmp_path).out
    gone = noetl("dlq", "discard", name, "--reason", "the row was deleted", cwd=tmp_path)
    assert (gone.code, gone.out) == (0, "1 dead letter discarded\n")
    assert "the row was deleted" in noetl("dlq", "show", name, cwd=tmp_path).out
    assert noetl("dlq", "list", cwd=tmp_path).err == "no dead letters\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("replay",), "Nothing selected to replay"),
        (("replay", "1-x"), "No dead letter 1-x"),
        (("replay", "--group", "x"), "No pending dead letter matches"),
        (("replay", "--all", "--patch", "spec.url"), "not of the form PATH=VALUE"),
        (("replay", "--all", "--patch", "url=x"), "begins with spec"),
        (("replay", "--all", "--patch", "spec.token=x"), "Keep it as a credential"),
        (("discard", "--all"), "--reason TEXT"),
        (("list", "--status", "lost"), "Unknown status 'lost'"),
        (("show",), "Missing argument 'ID'"),
        (("bury",), "No such command 'bury'"),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path_factory: pytest.TempPathFactory, arguments: tuple[str, ...], says: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "one_letter"
    if not folder.exists():
        folder.mkdir()
        assert run(folder, loop(8)).code == 5
    ran = noetl("dlq", *arguments, cwd=folder)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_letters_are_sent_under_their_topic(tmp_path: Path, web: Web) -> None:
    home = tmp_path / ".noetl"
    home.mkdir()
    settings = {"dlq": {"enabled": True, "topic": "noetl-dlq", "retention_days": 30}}
    (home / "noetl.yaml").write_text(json.dumps({**settings, "outbox": {"url": f"{web.url}/json"}}))
    ran = run(tmp_path, loop(8))
    assert (ran.code, "outbox: 1 delivered" in ran.err) == (5, True), ran.err
    (asked,) = web.asked
    assert (asked.path, asked.headers["x-noetl-topic"]) == ("/json/noetl-dlq", "noetl-dlq")
    (row,) = found(tmp_path, "list")
    sent = json.loads(asked.body)
    assert (sent["message_id"], sent["loop_index"]) == (row["message_id"], 7)
    assert run(tmp_path, loop(3)).code == 0  # nothing new, and nothing is sent twice
    assert len(web.asked) == 1


def test_where_they_are_not_enabled_no_letter_is_kept(tmp_path: Path) -> None:
    home = tmp_path / ".noetl"
    home.mkdir()
    (home / "noetl.yaml").write_text("dlq: {enabled: false}\n")
    ran = run(tmp_path, loop(8))
    assert (ran.code, json.loads(ran.out)["status"]) == (5, "partial")
    assert found(tmp_path, "list") == []


def test_the_execution_of_letters_may_be_the_last_one_and_must_exist(tmp_path: Path) -> None:
    assert run(tmp_path, loop(10)).code == 5
    every = found(tmp_path, "list")
    assert found(tmp_path, "list", "--execution", "last") == every != []
    for action in ("list", "groups"):
        unknown = noetl("dlq", action, "--execution", "424242", cwd=tmp_path)
        assert (unknown.code, unknown.out) == (2, "")
        assert "No execution 424242 in this store. List executions with `noetl runs`." in unknown.err
