"""Dead letters over the API, on SQLite, and on PostgreSQL at scale."""

from __future__ import annotations

import asyncio
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from noetl import Client
from noetl.settings import ServerSettings
from noetl.wire.letters import Letter
from tests.acceptance.run import Ran, noetl
from tests.client.working import working
from tests.databases import fresh_database
from tests.server.serving import Served, listening, playbook

pytestmark = pytest.mark.asyncio
CODE = """
def main(n, strict):
    if strict and n % 1000 == 7:
        raise ValueError(f"row {n} is bad: '{n}x'")
    if strict and n % 1000 == 13:
        return {}["amount"]
    if strict and n % 588 == 99:
        raise FatalError(f"customer {n} is gone")
    return f"row {n:064d}"
"""


def loop(count: int, mode: str = "parallel", code: str = CODE) -> str:
    """Return a loop over `count` numbers, some of them poison."""
    text = f"""
  - step: work
    loop:
      in: "{{{{ range({count}) | list }}}}"
      iterator: n
      spec: {{mode: {mode}, max_in_flight: 8, policy: {{failure: {{mode: best_effort}}}}}}
    tool:
      kind: python
      input: {{n: "{{{{ iter.n }}}}", strict: true}}
      code: |
        {code.strip().replace(chr(10), chr(10) + "        ")}
"""
    return playbook(text, "poison")


def poison(count: int) -> dict[str, int]:
    causes = {"ValueError": 0, "KeyError": 0, "FatalError": 0}
    for n in range(count):
        cause = (
            "ValueError" if n % 1000 == 7 else "KeyError" if n % 1000 == 13 else "FatalError" if n % 588 == 99 else ""
        )
        if cause:
            causes[cause] += 1
    return causes


@asynccontextmanager
async def team(folder: Path, **more: Any) -> AsyncIterator[tuple[Served, Client]]:
    """A server, a worker of its own, and a client."""
    async with (
        listening(folder, **more) as served,
        working(folder, served.url),
        Client(served.url) as client,
    ):
        yield served, client


async def settled(client: Client, **asked: Any) -> None:
    while (await client.letters(status=("replaying",), limit=1, **asked)).letters:
        await asyncio.sleep(0.02)


async def one_letter(served: Served, client: Client, content: str | None = None) -> Letter:
    execution = await served.start(content or loop(8))
    await served.until(execution, "partial", "failed")
    (row,) = (await client.letters(execution_id=execution)).letters
    return await client.letter(row.message_id)


@pytest.mark.parametrize(("count", "bad"), [(1_100, 6), pytest.param(10_000, 37, marks=pytest.mark.chaos)])
async def test_many_items_on_postgresql_with_three_causes(tmp_path: Path, count: int, bad: int) -> None:
    """3 groups; patch, replay in bulk, exact final count."""
    causes = poison(count)
    assert (sum(causes.values()), len(causes)) == (bad, 3)
    async with team(tmp_path, database=fresh_database()) as (served, client):
        execution = await served.start(loop(count))
        row = await client.wait(execution)
        assert row.status == "partial"
        assert row.result["stats"] == {"total": count, "succeeded": count - bad, "failed": bad, "skipped": 0}
        groups = await client.letter_groups(execution_id=execution)
        assert {group.last_error.partition(":")[0]: group.count for group in groups} == causes
        fixed = {"input.strict": False}
        for number, group in enumerate(groups):
            dry = await client.replay_letters(group=group.fingerprint, patch=fixed, dry_run=True)
            assert (dry.count, dry.preview[0].payload["input"]["strict"]) == (group.count, False)
            done = await client.replay_letters(group=group.fingerprint, patch=fixed, idempotency_key=f"k{number}")
            assert done.count == group.count
            again = await client.replay_letters(group=group.fingerprint, patch=fixed, idempotency_key=f"k{number}")
            assert again.count == group.count
        await settled(client)
        row = await client.status(execution)
        assert row.status == "completed"
        assert row.result["stats"] == {"total": count, "succeeded": count, "failed": 0, "skipped": 0}
        assert await client.letter_groups() == []
        assert len((await client.letters(status=("replayed",), limit=100)).letters) == bad
        parts = row.result["results"]["parts"]  # a result this large is stored in parts, which the repairs amend
        results = [one for part in parts for one in msgspec.json.decode(await client.result(part["ref"]))]
        assert results == [f"row {n:064d}" for n in range(count)]


async def test_a_letter_is_listed_shown_patched_and_replayed(tmp_path: Path) -> None:
    async with team(tmp_path) as (served, client):
        letter = await one_letter(served, client)
        assert (letter.step_id, letter.loop_index, letter.tool_kind, letter.status) == ("work", 7, "python", "pending")
        assert letter.payload["input"] == {"n": 7, "strict": True}
        assert "ValueError" in letter.last_stack
        assert letter.error["code"] == "PY_ValueError"
        done = await client.replay_letter(letter.message_id)
        assert (done.count, done.letters) == (1, [letter.message_id])
        await settled(client)
        again = await client.letter(letter.message_id)
        assert (again.status, again.attempts, again.replays) == ("pending", 2, 1)
        await client.replay_letter(letter.message_id, {"input.strict": False}, idempotency_key="k")
        await settled(client)
        assert (await client.letter(letter.message_id)).status == "replayed"
        assert (await client.status(letter.execution_id)).status == "completed"
        same = await client.replay_letter(letter.message_id, {"input.strict": False}, idempotency_key="k")
        assert same.letters == [letter.message_id]
        other = f"/api/dlq/{letter.message_id}/replay"
        problem = await served.json("POST", other, {}, 409, headers={"Idempotency-Key": "other"})
        assert "is replayed" in problem["detail"]


async def test_a_letter_that_is_discarded_keeps_its_reason(tmp_path: Path) -> None:
    async with team(tmp_path) as (served, client):
        letter = await one_letter(served, client)
        assert (await client.discard_letter(letter.message_id, "the row was deleted")).count == 1
        closed = await client.letter(letter.message_id)
        assert (closed.status, closed.note, closed.closed_by) == ("discarded", "the row was deleted", "local")
        assert closed.closed_at is not None
        await served.json("POST", f"/api/dlq/{letter.message_id}/discard", {"reason": "again"}, 409)
        entries = await client.audit(entity=letter.message_id)
        assert [(one.action, one.detail["reason"]) for one in entries] == [("dlq.discard", "the row was deleted")]


async def test_a_step_that_failed_is_repaired_and_nothing_behind_it_runs(tmp_path: Path) -> None:
    content = playbook(
        "  - step: bad\n    tool: {kind: python, code: 'result = 1 // n', input: {n: 0}}\n    next: after\n"
        "  - step: after\n    tool: {kind: noop}\n",
        "bad",
    )
    async with team(tmp_path) as (served, client):
        letter = await one_letter(served, client, content)
        await client.replay_letter(letter.message_id, {"input.n": 1})
        await settled(client)
        assert (await client.letter(letter.message_id)).status == "replayed"
        events = await client.events(letter.execution_id)
        assert (events[-1].event_type, events[-1].payload["result"]) == ("step.repaired", 1)
        assert (await client.status(letter.execution_id)).status == "failed"


async def test_a_patch_reaches_the_task_that_a_workbook_call_ran(tmp_path: Path) -> None:
    content = playbook(
        "  - step: all\n    loop: {in: [1, 2], iterator: n, spec: {policy: {failure: {mode: best_effort}}}}\n"
        "    tool:\n      - ask: {kind: workbook, task: part, input: {n: '{{ iter.n }}'}}\n",
        "calls",
        workbook=[{"name": "part", "kind": "python", "code": "result = 10 // (n - 1)"}],
    )
    async with team(tmp_path) as (served, client):
        letter = await one_letter(served, client, content)
        assert (letter.task, letter.tool_kind, letter.payload["input"]) == ("ask", "python", {"n": 1})
        assert letter.payload["spec"] == {"code": "result = 10 // (n - 1)"}
        patch = {"spec.code": "result = 10 // n"}
        dry = await client.replay_letters(group=letter.fingerprint, patch=patch, dry_run=True)
        assert dry.preview[0].payload["spec"]["code"] == "result = 10 // n"
        await client.replay_letters(group=letter.fingerprint, patch=patch)
        await settled(client)
        row = await client.status(letter.execution_id)
        assert (row.status, row.result["results"]) == ("completed", [10, 10])


async def test_many_letters_are_replayed_or_discarded_once_under_one_key(tmp_path: Path) -> None:
    """A repeated request skips letters that came back, and does the remaining ones."""
    async with team(tmp_path) as (served, client):
        executions = [(await one_letter(served, client)).execution_id for _ in range(3)]
        (row, *_) = (await client.letters(execution_id=executions[0])).letters
        asked: dict[str, Any] = {"group": row.fingerprint, "idempotency_key": "k"}
        first = await client.replay_letters(**asked)
        assert (first.count, len(first.letters)) == (3, 3)
        await settled(client)
        again = await client.replay_letters(**asked)
        assert (again.count, again.letters) == (3, [])
        await settled(client)
        assert {one.replays for one in (await client.letters()).letters} == {1}
        other = await client.replay_letters(**{**asked, "patch": {"input.strict": False}})
        assert other.count == 3
        await settled(client)
        assert (await client.letters(status=("pending",))).letters == []
        body, headers = {"all": True, "reason": "rows of a test"}, {"Idempotency-Key": "k"}
        await one_letter(served, client)
        for _ in range(2):
            closed = await served.json("POST", "/api/dlq/discard", body, headers=headers)
            assert closed["count"] == 1


async def test_bad_requests_say_what_to_do(tmp_path: Path) -> None:
    async with team(tmp_path) as (served, client):
        letter = await one_letter(served, client)
        place = f"/api/dlq/{letter.message_id}"
        for path, body, status, says in (
            ("/api/dlq/replay", {}, 422, "select any dead letters"),
            ("/api/dlq/discard", {"group": "x"}, 422, "reason"),
            (f"{place}/replay", {"patch": {"url": "x"}}, 400, "spec.url"),
            (f"{place}/replay", {"patch": {"spec.headers.Authorization": "x"}}, 400, "credential"),
            ("/api/dlq/none/replay", {}, 404, "No dead letter"),
        ):
            problem = await served.json("POST", path, body, status)
            assert says in str(problem), problem
        await served.json("GET", "/api/dlq?status=lost", None, 400)
        await served.json("GET", "/api/dlq/none", None, 404)
        assert (await client.letter(letter.message_id)).status == "pending"


async def test_letters_are_counted(tmp_path: Path) -> None:
    async with team(tmp_path) as (served, client):
        await one_letter(served, client)
        text = (await served.http.get("/metrics")).text
        assert 'noetl_dlq_total{kind="python",sink=""} 1.0' in text
        assert 'dlq_entries{status="pending"} 1.0' in text


async def test_exhausted_leases_of_a_server_become_letters(tmp_path: Path) -> None:
    content = playbook("  - step: one\n    tool: {kind: noop}\n", "lost")
    async with listening(tmp_path, lease_ms=50, max_attempts=2) as served:
        execution = await served.start(content)
        for _ in range(2):
            while not await served.services.control.claim("dead", ("",), 1, 0.2):
                pass
        await served.until(execution, "failed")
        (letter,) = (await served.json("GET", f"/api/dlq?execution_id={execution}"))["letters"]
        assert (letter["reason"], letter["attempts"], letter["step_id"]) == ("lease", 2, "one")


async def test_no_value_of_a_credential_reaches_a_letter(tmp_path: Path) -> None:
    secret = "correct horse battery"
    task = (
        "{kind: http, url: 'http://127.0.0.1:9/{{ keychain.api.token }}', headers: {X-Note: 'a {{ keychain.api.token }} b'},"
        " input: {seen: '{{ keychain.api.token }}', n: 5}, spec: {policy: {rules: [{else: {then: {do: fail}}}]}}}"
    )
    content = playbook(f"  - step: call\n    tool: {task}\n", "call", keychain=[{"name": "api", "kind": "stored"}])
    key = urlsafe_b64encode(bytes(32)).decode()
    async with team(tmp_path, server=ServerSettings(key=key)) as (served, client):
        await client.put_credential("api", {"token": secret})
        letter = await one_letter(served, client, content)
        assert letter.payload["spec"]["headers"] == {"X-Note": "a (masked secret) b"}
        assert letter.payload["input"] == {"seen": "(masked secret)", "n": 5}
        assert letter.tool_kind == "http"
        for form in (secret, quote(secret), b64encode(secret.encode()).decode()):
            assert form not in msgspec.json.encode(letter).decode()
    files = b"".join(path.read_bytes() for path in tmp_path.glob("noetl.db*"))
    assert b"127.0.0.1:9" in files
    assert secret.encode() not in files


async def test_the_command_line_works_at_a_server(tmp_path: Path) -> None:
    async with team(tmp_path) as (served, client):
        letter = await one_letter(served, client)

        async def ran(*arguments: str) -> Ran:
            return await asyncio.to_thread(noetl, *arguments, "--server", served.url)

        name = letter.message_id
        assert name in (await ran("dlq", "list", "--execution", letter.execution_id)).out
        assert (await ran("dlq", "groups")).out.startswith(f"{letter.fingerprint}      1 in 1 | test/poison:work")
        assert "Traceback" in (await ran("dlq", "show", name)).out
        dry = await ran("dlq", "replay", name, "--patch", "input.strict=false", "--dry-run")
        assert '"strict":false' in dry.out
        again = await ran("dlq", "replay", name, "--wait")
        assert (again.code, again.out) == (1, "1 dead letter replayed; 0 repaired, 1 failed again\n")
        fixed = await ran("dlq", "replay", "--group", letter.fingerprint, "--patch", "input.strict=false", "--wait")
        assert (fixed.code, fixed.out) == (0, "1 dead letter replayed; 1 repaired, 0 failed again\n")
        assert (await ran("dlq", "replay", "--group", letter.fingerprint)).code == 2
        assert "is replayed" in (await ran("dlq", "discard", name, "--reason", "late")).err
        drained = await ran("worker", "drain", "--pool", "default")
        assert (drained.code, drained.out) == (0, "draining w-1\n")
