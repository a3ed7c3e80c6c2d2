"""Every store's server tables: workers, queues, tokens, credentials, audit."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from noetl.model.errors import Conflict
from noetl.ports import AuditEntry, Token, WorkerInfo
from noetl.server.operations.dead_letters import first_letters
from tests.conformance.commits import commit, work
from tests.conformance.conftest import Place, Store, Team
from tests.conformance.test_dead_letters import letter

pytestmark = pytest.mark.asyncio
WORKER = WorkerInfo("w1", "gpu", ("cuda", "eu"), 8, 2, "ready", "host", "1.0", 100, 150, ("API", "PG"))
TOKEN = Token("t1", "digest", "worker", "for the lab", 100, "ada", 900, None, None, "gpu")


async def test_a_worker_is_written_down_and_written_again(place: Place) -> None:
    one, two = place.team(place.open()), place.team(place.open())
    await one.enlist(WORKER)
    assert await two.workers() == [WORKER]
    again = WorkerInfo("w1", "cpu", registered_at=200, credentials=())
    await two.enlist(again)
    await two.enlist(WorkerInfo("w0", ""))
    assert await one.workers() == [WorkerInfo("w0", ""), again]


async def test_a_sign_of_life_gives_the_status(team: Team) -> None:
    assert await team.seen("w1", 200, 3) is None
    await team.enlist(WORKER)
    assert await team.seen("w1", 200, 3) == "ready"
    assert await team.seen("w1", 190, 4) == "ready"  # a late one
    [found] = await team.workers()
    assert (found.seen_at, found.active) == (200, 4)
    assert await team.set_status("w1", "draining")
    assert await team.seen("w1", 201, 0) == "draining"
    assert not await team.set_status("w2", "draining")


async def test_a_worker_is_struck_off(team: Team) -> None:
    await team.enlist(WORKER)
    await team.discharge("w1")
    await team.discharge("w1")
    assert await team.workers() == []
    assert await team.seen("w1", 200, 0) is None


async def test_a_worker_that_came_back_does_not_leave(team: Team) -> None:
    await team.enlist(WORKER)
    assert not await team.leave("w1", WORKER.registered_at + 1)
    assert not await team.leave("w2", 0)
    assert [worker.status for worker in await team.workers()] == ["ready"]
    assert await team.leave("w1", WORKER.registered_at)
    assert [worker.status for worker in await team.workers()] == ["gone"]


async def test_workers_that_were_not_seen_for_long_are_struck_off(team: Team) -> None:
    await team.enlist(WorkerInfo("w0", "", seen_at=99))
    await team.enlist(WorkerInfo("w1", "", seen_at=99))
    await team.enlist(WorkerInfo("w2", "", seen_at=100))
    await team.seen("w1", 300, 0)
    assert await team.strike_off(100) == 1
    assert [worker.worker_id for worker in await team.workers()] == ["w1", "w2"]


async def test_stored_credentials_are_found_by_name(team: Team) -> None:
    assert await team.known_credentials(["a"]) == set()
    for name in ("a", "b", 'it\'s "quoted"'):
        await team.put_credential(name, "generic", b"sealed", {}, 1)
    assert await team.known_credentials(["a", "A", "c", 'it\'s "quoted"']) == {"a", 'it\'s "quoted"'}
    assert await team.known_credentials([]) == set()


async def test_the_queue_is_counted_by_pool_and_required_tags(store: Store, team: Team) -> None:
    assert await team.depths() == []
    await store.commit([commit(work=(work("a"), work("b"), work("c", pool="gpu", requires=("x", "b"))))])
    await store.commit([commit(at=1, work=(work("d"), work("e", pool="gpu", requires=("b", "x", "b"))))])
    await store.claim("w", [""], 1, 10, 20)
    await store.expired(30, 1)
    await store.claim("w", [""], 1, 10, 20)
    gpu = {"pool": "gpu", "requires": ("b", "x"), "queued": 2, "leased": 0, "dead": 0, "oldest": 1_001}
    assert await team.depths() == [
        {"pool": "", "requires": (), "queued": 1, "leased": 1, "dead": 1, "oldest": 1_002},
        gpu,
    ]
    await store.claim("w", [""], 1, 10, 20)
    depths = await team.depths()
    assert (depths[0]["queued"], depths[0]["oldest"]) == (0, None)


async def test_work_that_a_worker_holds_is_listed_oldest_first(store: Store, team: Team) -> None:
    await store.commit([commit(work=(work("a"), work("b"), work("c")))])
    for name in ("w", "other", "w"):
        await store.claim(name, [""], 1, 10, 20)
    first, second = await team.held("w")
    assert (first["work_id"], second["work_id"]) == (work("a").work_id, work("c").work_id)
    assert dict(first) == {"work_id": work("a").work_id, "attempt": 1, "until": 20}
    assert [row["work_id"] for row in await team.held("other")] == [work("b").work_id]
    assert await team.held("unknown") == []
    await store.expired(30, 1)
    assert await team.held("w") == []


async def test_a_key_stands_for_one_execution_whoever_asks(place: Place) -> None:
    teams = [place.team(place.open()) for _ in range(4)]
    asked = [team.keep_key("k", str(number), 100 + number, 0) for number, team in enumerate(teams * 5)]
    assert len(set(await asyncio.gather(*asked))) == 1
    assert await teams[0].keep_key("other", "77", 100, 0) == "77"


async def test_keys_that_are_kept_together_stand_for_the_same_executions_whoever_asks(place: Place) -> None:
    teams = [place.team(place.open()) for _ in range(4)]
    names = [f"k{number % 7}{number}" for number in range(50)]
    lists = [{name: f"{asker}{place:03}" for place, name in enumerate(names)} for asker in range(1, 9)]
    turned = [dict(reversed(kept.items())) if number % 2 else kept for number, kept in enumerate(lists)]
    asked = [team.keep_keys(kept, 100, 0) for team, kept in zip(teams * 2, turned, strict=True)]
    found = [dict(zip(kept, got, strict=True)) for kept, got in zip(turned, await asyncio.gather(*asked), strict=True)]
    assert all(one == found[0] for one in found)
    assert found[0] in lists  # all are those of one who asked
    assert await teams[0].keep_keys({"new": "-7", **lists[0]}, 100, 0) == ["-7", *found[0].values()]
    assert await teams[0].keep_key(names[3], "99", 100, 0) == found[0][names[3]]


async def test_a_key_is_forgotten_after_its_time_and_with_its_execution(store: Store, team: Team) -> None:
    assert await team.keep_key("k", "11", 100, 0) == "11"
    assert await team.keep_key("k", "12", 200, 100) == "11"
    assert await team.keep_key("k", "13", 300, 101) == "13"
    await store.commit([commit("13", projection={"status": "completed", "ended_at": 1})])
    assert await store.remove("13")
    assert await team.keep_key("k", "14", 400, 0) == "14"


async def test_a_request_about_many_letters_that_is_sent_again_is_about_the_same_ones(team: Team) -> None:
    old, new = letter("a", at=1_000), letter("b", at=2_000)
    assert await first_letters(team, "k", [old, new], 3_000) == ([old, new], 2)
    back = letter("a", at=4_000)  # replayed meanwhile, and failed again
    assert await first_letters(team, "k", [back, new], 5_000) == ([new], 2)
    assert await first_letters(team, "other", [back], 5_000) == ([back], 1)
    assert await first_letters(team, "none", [], 5_000) == ([], 0)
    assert await first_letters(team, "none", [back], 6_000) == ([], 0)


async def test_a_token_is_found_by_its_digest(place: Place) -> None:
    one, two = place.team(place.open()), place.team(place.open())
    await one.add_token(TOKEN)
    assert await two.token("digest") == TOKEN
    assert await two.token("another") is None
    other = Token("t0", "other", "viewer", created_at=100)
    await one.add_token(other)
    assert await two.tokens() == [other, TOKEN]


@pytest.mark.parametrize("second", [Token("t1", "other", "viewer"), Token("t2", "digest", "viewer")])
async def test_no_two_tokens_are_one(team: Team, second: Token) -> None:
    await team.add_token(TOKEN)
    with pytest.raises(Conflict, match="token"):
        await team.add_token(second)
    assert await team.tokens() == [TOKEN]


async def test_a_token_is_revoked_once_and_stays_to_be_seen(team: Team) -> None:
    await team.add_token(TOKEN)
    assert await team.revoke("t1", 500)
    assert not await team.revoke("t1", 600)
    assert not await team.revoke("t2", 600)
    found = await team.token("digest")
    assert found is not None
    assert found.revoked_at == 500


async def test_valid_tokens_are_neither_revoked_nor_expired(team: Team) -> None:
    await team.add_token(TOKEN)
    await team.add_token(replace(TOKEN, token_id="t2", digest="two", expires_at=700))
    asked = ["t1", "t2", "unknown"]
    assert await team.valid_tokens(asked, 699) == {"t1", "t2"}
    assert await team.valid_tokens(asked, 700) == {"t1"}
    assert await team.valid_tokens(["t2"], 0) == {"t2"}
    await team.revoke("t1", 500)
    assert await team.valid_tokens(asked, 0) == {"t2"}
    assert await team.valid_tokens([], 0) == set()


async def test_the_last_use_of_a_token_is_noted(team: Team) -> None:
    await team.add_token(TOKEN)
    await team.used("t1", 300)
    await team.used("t1", 200)
    await team.used("t2", 200)
    found = await team.token("digest")
    assert found is not None
    assert found.used_at == 300


async def test_a_credential_comes_back_as_it_was_sealed(place: Place) -> None:
    one, two = place.team(place.open()), place.team(place.open())
    assert await one.put_credential("pg", "postgres", b"\x00sealed", {"fields": ["user"]}, 5) == 1
    first = {
        "name": "pg",
        "kind": "postgres",
        "about": {"fields": ["user"]},
        "version": 1,
        "created_at": 5,
        "updated_at": 5,
    }
    assert await two.sealed_credential("pg") == {**first, "sealed": b"\x00sealed"}
    assert await two.credentials() == [first]
    assert await two.put_credential("pg", "http", b"other", {}, 9) == 2
    changed = {"name": "pg", "kind": "http", "about": {}, "version": 2, "created_at": 5, "updated_at": 9}
    assert await one.credentials() == [changed]
    assert await one.sealed_credential("pg") == {**changed, "sealed": b"other"}
    assert await one.sealed_credential("mysql") is None


async def test_a_credential_is_deleted(team: Team) -> None:
    await team.put_credential("b", "http", b"1", {}, 5)
    await team.put_credential("a", "http", b"2", {}, 5)
    assert [row["name"] for row in await team.credentials()] == ["a", "b"]
    assert await team.delete_credential("a")
    assert not await team.delete_credential("a")
    assert [row["name"] for row in await team.credentials()] == ["b"]
    assert await team.put_credential("a", "http", b"3", {}, 6) == 1


async def test_the_audit_trail_is_read_newest_first(team: Team) -> None:
    await team.audit([])
    acts = [AuditEntry(at, actor, "execution.cancel", entity, {"n": at}) for at, actor, entity in
            ((1, "ada", "e1"), (2, "bob", "e1"), (3, "ada", "e2"))]  # fmt: skip
    await team.audit(acts[:2])
    await team.audit(acts[2:])
    found = await team.audited()
    assert [(entry.at, entry.actor, entry.entity, entry.detail) for entry in found] == [
        (3, "ada", "e2", {"n": 3}),
        (2, "bob", "e1", {"n": 2}),
        (1, "ada", "e1", {"n": 1}),
    ]
    numbers = [entry.number for entry in found]
    assert numbers == sorted(set(numbers), reverse=True)
    assert [entry.at for entry in await team.audited(actor="ada")] == [3, 1]
    assert [entry.at for entry in await team.audited(entity="e1", limit=1)] == [2]
    assert [entry.at for entry in await team.audited(before=numbers[1])] == [1]


async def test_who_did_it_is_written_down_with_a_commit_that_applies(store: Store, team: Team) -> None:
    acts = [AuditEntry(at, "ada", "execution.start", "1", {"n": at}) for at in (1, 2, 3)]
    await store.commit([commit(audit=(acts[0],)), commit("2", audit=(acts[1],))])
    await store.commit([commit(audit=(acts[2],)), commit("3")])  # the first is stale
    assert [one.at for one in await team.audited()] == [2, 1]


async def test_who_did_it_is_written_down_with_a_change_that_took_place(store: Store, team: Team) -> None:
    def act(name: str) -> AuditEntry:
        return AuditEntry(1, "ada", name, "it", {"n": 1})

    await team.enlist(WORKER, act("enlist"))
    await team.set_status("w1", "draining", act("set_status"))
    await team.set_status("w9", "draining", act("nothing"))
    await team.discharge("w1", act("discharge"))
    await team.discharge("w1", act("nothing"))
    await team.add_token(TOKEN, act("add_token"))
    with pytest.raises(Conflict):
        await team.add_token(TOKEN, act("nothing"))
    await team.revoke("t1", 5, act("revoke"))
    await team.revoke("t1", 5, act("nothing"))
    await team.put_credential("pg", "postgres", b"x", {}, 1, act("put_credential"))
    await team.delete_credential("pg", act("delete_credential"))
    await team.delete_credential("pg", act("nothing"))
    await store.register("a", b"1", b"{}", "hash", 1, act("register"))
    await store.register("a", b"1", b"{}", "hash", 1, act("nothing"))
    await store.unregister("a", None, act("unregister"))
    await store.unregister("a", None, act("nothing"))
    await store.commit([commit("13", projection={"status": "completed", "ended_at": 1})])
    await store.remove("13", act("remove"))
    await store.remove("13", act("nothing"))
    assert [one.action for one in reversed(await team.audited())] == [
        "enlist", "set_status", "discharge", "add_token", "revoke", "put_credential", "delete_credential", "register",
        "unregister", "remove",
    ]  # fmt: skip
