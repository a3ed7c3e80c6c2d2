"""Executions over HTTP with a worker in the same process: start to delete."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.commits import commit
from tests.server.serving import FAILS, ONE, TWO, WAITS, in_process, playbook

pytestmark = pytest.mark.asyncio
GATED = playbook(
    "  - step: start\n    tool: {kind: noop}\n    next: gated\n"
    "  - step: gated\n    spec: {policy: {admit: {rules: [{when: '{{ ctx.open }}', then: {allow: true}}]}}}\n"
    "    tool: {kind: noop, result: in}\n    next: after\n"
    "  - step: after\n    tool: {kind: noop, result: '{{ gated }}'}\n",
    "gated",
)


async def test_an_execution_is_started_seen_and_explained(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(ONE, payload={"n": 5}, tags=["nightly"])
        found = await served.until(started, "completed")
        assert found["result"] == 5
        assert found["workload"] == {"n": 5}
        assert found["steps"]["one"]["done"] == 1
        assert found["tags"] == ["nightly"]
        assert found["ended_at"] - found["started_at"] == found["duration_ms"]
        events = await served.json("GET", f"/api/executions/{started}/events")
        assert found["last_seq"] == events["events"][-1]["seq"]
        explained = await served.json("GET", f"/api/executions/{started}/explain")
        assert explained["standing"] == []
        assert explained["choices"][0]["step"] == "one"
        assert explained["seq"] == found["last_seq"]
        assert explained["failure"] is None


async def test_a_failure_is_explained_with_what_helps(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(ONE.replace("workload.n", "workload.nothing.n"), payload={"n": 5})
        await served.until(started, "failed")
        failure = (await served.json("GET", f"/api/executions/{started}/explain"))["failure"]
        assert (failure["step"], failure["error"]["kind"]) == ("one", "template")
        assert failure["fix"].startswith("Correct the expression")


async def test_a_past_state_is_explained_with_its_causes(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(WAITS)
        await served.until(started, "waiting")
        explain = f"/api/executions/{started}/explain"
        (now,) = (await served.json("GET", explain))["standing"]
        assert (now["cause"], now["refs"]["signal"], now["step"]) == ("signal", "go", "ask")
        events = (await served.json("GET", f"/api/executions/{started}/events"))["events"]
        seq = next(event["seq"] for event in events if event["event_type"] == "step.scheduled")
        past = await served.json("GET", f"{explain}?seq={seq}")
        assert (past["seq"], [one["cause"] for one in past["standing"]]) == (seq, ["worker"])
        assert past["standing"][0]["refs"]["pool"] == ""
        await served.json("GET", f"{explain}?seq=1000", status=400)


async def test_a_start_waits_for_the_end_where_it_is_asked_to(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        path = await served.register(ONE)
        asked = {"path": path, "payload": {"n": 5}, "wait_ms": 30_000}
        for headers, is_again in (({}, False), ({"Idempotency-Key": "k"}, False), ({"Idempotency-Key": "k"}, True)):
            told = await served.json("POST", "/api/execute", asked, 201, headers=headers)
            found = await served.json("GET", f"/api/executions/{told['execution_id']}")
            assert found["result"] == 5
            assert {name: told[name] for name in ("status", "result", "error", "ended_at")} == {
                "status": "completed", "result": 5, "error": None, "ended_at": found["ended_at"],
            }  # fmt: skip
            assert told["repeated"] is is_again
        told = await served.json("POST", "/api/execute", {"content": FAILS, "wait_ms": 30_000})
        found = await served.json("GET", f"/api/executions/{told['execution_id']}")
        assert (told["status"], told["error"]) == ("failed", found["error"])
        told = await served.json("POST", "/api/execute", {"content": WAITS, "wait_ms": 300})
        assert (told["status"], told["ended_at"], told["result"]) == ("waiting", None, None)
        await served.json("POST", "/api/execute", {"path": path, "wait_ms": 30_001}, 422)


async def test_what_is_being_undone_is_not_cancelled_unless_it_is_abandoned(tmp_path: Path) -> None:
    content = playbook(
        "  - {step: book, tool: {kind: noop}, compensate: refund, next: fail}\n"
        "  - {step: fail, tool: {kind: wait, signal: on, timeout_s: 0.01}}\n"
        "  - {step: refund, tool: {kind: wait, signal: refunded}}\n",
        "undoing",
        policy={"rollback": "on_fail"},
    )
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(content)
        while "refund" not in (await served.json("GET", f"/api/executions/{started}/explain"))["standing"][0]["step"]:
            await asyncio.sleep(0.02)
        place = f"/api/executions/{started}/cancel"
        for body in ({}, {"compensate": True}):
            problem = await served.json("POST", place, body, 409)
            assert "is rolling back (1 left to compensate)" in problem["detail"]
            assert "abandon" in problem["fix"]
        await served.json("POST", place, {"abandon": True, "compensate": True}, 422)
        await served.json("POST", place, {"abandon": True, "reason": "by hand"})
        found = await served.until(started, "failed")
        assert (found["compensated"], found["error"]["kind"]) == (False, "timeout")
        [act] = (await served.json("GET", f"/api/audit?entity={started}&limit=1"))["entries"]
        assert (act["action"], act["detail"]["abandon"]) == ("execution.cancel", True)


async def test_items_that_run_are_explained_with_the_time_at_which_they_are_ended(tmp_path: Path) -> None:
    content = playbook(
        "  - step: all\n    loop: {in: [0, 30], iterator: n, item_timeout_ms: 60000, spec: {mode: parallel}}\n"
        "    tool: {kind: shell, command: 'sleep {{ iter.n }}'}\n",
        "items",
    )
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(content)
        while True:
            [one] = (await served.json("GET", f"/api/executions/{started}/explain"))["standing"]
            nearest = one["deadlines"][0]
            if nearest.get("at") and nearest["what"].startswith("item 1 "):
                break
            await asyncio.sleep(0.05)
        assert 0 <= nearest["at"] - one["since"] - 60_000 < 60_000
        await served.json("POST", f"/api/executions/{started}/cancel", {})


async def test_a_start_by_content_and_by_hash(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        made = await served.json("POST", "/api/execute", {"content": ONE}, 201)
        await served.until(made["execution_id"], "completed")
        again = await served.json("POST", "/api/execute", {"playbook": made["playbook"], "payload": {"n": 3}}, 201)
        assert (await served.until(again["execution_id"], "completed"))["result"] == 3
        seed = await served.json("POST", "/api/executions/execute", {"playbook_id": "test/one"}, 404)
        assert "test/one" in seed["detail"]


async def test_the_same_key_starts_once_also_at_the_same_time(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path = await served.register(WAITS)
        key = {"Idempotency-Key": "abc"}
        made = await asyncio.gather(
            *(served.json("POST", "/api/execute", {"path": path}, 201, headers=key) for _ in range(8))
        )
        assert len({one["execution_id"] for one in made}) == 1
        again = await served.json("POST", "/api/execute", {"path": path}, 201, headers=key)
        assert again["repeated"]
        assert len((await served.json("GET", "/api/executions"))["executions"]) == 1
        other = await served.register(ONE)
        for body in ({"path": other}, {"path": path, "payload": {"n": 2}}):
            refused = await served.json("POST", "/api/execute", body, 409, headers=key)
            assert refused["where"] == "header Idempotency-Key"


class Ahead:
    """A clock that goes before another."""

    def __init__(self, clock: Any, by_ms: int) -> None:
        self._clock, self._by_ms = clock, by_ms

    def now(self) -> int:
        return int(self._clock.now()) + self._by_ms

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


async def test_the_same_key_starts_once_at_two_servers_whose_clocks_differ(tmp_path: Path) -> None:
    async with in_process(tmp_path) as one, in_process(tmp_path) as two:
        object.__setattr__(two.services, "clock", Ahead(two.services.clock, 90_000))
        path = await one.register(WAITS)
        for number in range(10):
            key = {"Idempotency-Key": f"k{number}"}
            asked = [served.json("POST", "/api/execute", {"path": path}, 201, headers=key) for served in (one, two)]
            assert len({made["execution_id"] for made in await asyncio.gather(*asked)}) == 1
        assert len((await one.json("GET", "/api/executions"))["executions"]) == 10


async def test_a_key_of_an_execution_that_was_deleted_or_refused_starts_anew(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        path, key = await served.register(ONE), {"Idempotency-Key": "abc"}
        first = (await served.json("POST", "/api/execute", {"path": path}, 201, headers=key))["execution_id"]
        await served.until(first, "completed")
        await served.json("DELETE", f"/api/executions/{first}", status=200)
        again = await served.json("POST", "/api/execute", {"path": path, "payload": {"n": 2}}, 201, headers=key)
        assert (again["execution_id"] != first, again["repeated"]) == (True, False)


async def test_a_key_with_two_payloads_at_the_same_time_starts_one(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path = await served.register(WAITS)
        answers = await asyncio.gather(
            *(
                served.http.post(
                    "/api/execute", json={"path": path, "payload": {"n": n}}, headers={"Idempotency-Key": "k"}
                )
                for n in range(4)
            )
        )
        assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
        assert len((await served.json("GET", "/api/executions"))["executions"]) == 1


async def test_a_request_cannot_say_what_the_playbook_says(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path = await served.register(ONE)
        for field in ("spec", "auth", "pool", "executor"):
            refused = await served.json("POST", "/api/execute", {"path": path, field: {}}, 422)
            assert field in refused["detail"]


@pytest.mark.parametrize(
    ("body", "status", "where"),
    [
        ({}, 422, "$"),
        ({"path": 3}, 422, "$.path"),
        ({"path": "x", "payload": []}, 422, "$.payload"),
        ({"path": "no/such"}, 404, None),
        ({"path": "x", "content": "y"}, 422, "$"),
        ({"playbook": "0" * 64}, 400, None),
        ({"content": "a: ["}, 422, "$.content, line 1"),
        ({"path": "x", "priority": 10**6}, 422, "$.priority"),
    ],
)
async def test_a_bad_start_is_told_where_and_why(tmp_path: Path, body: Any, status: int, where: str | None) -> None:
    async with in_process(tmp_path) as served:
        answer = await served.http.post("/api/execute", json=body)
        assert answer.headers["content-type"] == "application/problem+json"
        told = answer.json()
        assert (told["status"], told.get("where")) == (status, where), told
        assert told["detail"]


async def test_a_payload_that_does_not_fit_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    text = ONE.replace(
        "workload:", "executor: {spec: {workload_schema: " + str(schema).replace("'", '"') + "}}\nworkload:"
    )
    async with in_process(tmp_path) as served:
        path = await served.register(text)
        told = await served.json("POST", "/api/execute", {"path": path, "payload": {"n": "x"}}, 422)
        assert "workload.n" in told["detail"]
        assert (await served.json("GET", "/api/executions"))["executions"] == []


async def test_lists_are_filtered_searched_and_paged(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        ids = [await served.start(ONE, tags=[f"t{n}"]) for n in range(5)]
        for one in ids:
            await served.until(one, "completed")
        waiting = await served.start(WAITS)
        await served.until(waiting, "waiting")
        page = await served.json("GET", "/api/executions?limit=4")
        rest = await served.json("GET", f"/api/executions?limit=4&cursor={page['next']}")
        seen = [row["execution_id"] for row in (*page["executions"], *rest["executions"])]
        assert seen == sorted([*ids, waiting], key=int, reverse=True)
        assert rest["next"] is None

        async def found(query: str) -> list[str]:
            return [row["execution_id"] for row in (await served.json("GET", f"/api/executions?{query}"))["executions"]]

        assert await found("tag=t3") == [ids[3]]
        assert await found("status=waiting") == [waiting]
        assert len(await found("status=completed&path=test/one")) == 5
        assert await found("search=waits") == [waiting]
        await served.json("GET", "/api/executions?nonsense=1", None, 422)
        await served.json("GET", "/api/executions?limit=0", None, 422)


async def test_events_are_filtered_and_paged_and_states_shown_at_any_of_them(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(TWO)
        await served.until(started, "completed")
        every = (await served.json("GET", f"/api/executions/{started}/events"))["events"]
        assert [event["seq"] for event in every] == list(range(1, len(every) + 1))
        page = await served.json("GET", f"/api/executions/{started}/events?type=step.*&step=two&limit=2")
        assert {event["step"] for event in page["events"]} == {"two"}
        assert page["next"] == page["events"][-1]["seq"]
        state = await served.json("GET", f"/api/executions/{started}/state?seq=3")
        assert (state["seq"], state["status"]) == (3, "running")
        whole = await served.json("GET", f"/api/executions/{started}/state")
        assert whole["state"]["result"] == 2
        changes = (await served.json("GET", f"/api/executions/{started}/state?seq=5&diff=3"))["changes"]
        assert "seq" in {change["path"] for change in changes}
        await served.json("GET", f"/api/executions/{started}/state?seq=9999", None, 400)


async def test_unknown_executions_are_not_found(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for path in ("", "/events", "/state", "/explain", "/events/stream"):
            for name in ("123", "nonsense", "9" * 40):
                told = await served.json("GET", f"/api/executions/{name}{path}", None, 404)
                assert told["type"] == "about:blank#unknown-execution"
        await served.json("POST", "/api/executions/123/cancel", {}, 404)


async def test_signals_pauses_and_patches_move_an_execution(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(WAITS)
        await served.until(started, "waiting")
        assert (await served.json("POST", f"/api/executions/{started}/pause"))["status"] == "paused"
        await served.json("POST", f"/api/executions/{started}/resume")
        await served.json("PATCH", f"/api/executions/{started}/ctx", {"writes": {"a.b": 1}})
        assert (await served.json("GET", f"/api/vars/{started}"))["vars"] == {"a": {"b": 1}}
        await served.json("POST", f"/api/vars/{started}", {"writes": {"c": 2}})
        assert (await served.json("GET", f"/api/vars/{started}/c"))["value"] == 2
        await served.json("POST", f"/api/vars/{started}", {"writes": {"a.c": 3}})
        about = (await served.json("GET", f"/api/vars/{started}?metadata=true"))["metadata"]
        assert {name: (one["by"], one["writes"]) for name, one in about.items()} == {
            "a": ("local", 2),
            "c": ("local", 1),
        }
        assert about["a"]["created_at"] <= about["c"]["created_at"] <= about["a"]["changed_at"]
        [patched] = [
            one
            for one in (await served.json("GET", f"/api/executions/{started}/events"))["events"]
            if one["seq"] == about["a"]["seq"]
        ]
        assert (patched["event_type"], patched["payload"]["writes"]) == ("ctx.patched", {"a.c": 3})
        single = await served.json("GET", f"/api/vars/{started}/c?metadata=true")
        assert single["metadata"] == about["c"]
        rendered = await served.json(
            "POST", "/context/render", {"execution_id": started, "template": ["{{ ctx.c + 1 }}"]}
        )
        assert rendered["result"] == [3]
        await served.json("POST", "/context/render", {"execution_id": started, "template": "{{ nope }}"}, 422)
        for broken in ("{{ 1 + }}", "{{ nope", "{% if %}", "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}"):
            body = {"execution_id": started, "template": {"a": ["x", broken]}, "strict": False}
            told = await served.json("POST", "/context/render", body, 422)
            assert told["where"] == "$.template.a[1]"
        await served.json("POST", f"/api/executions/{started}/signal", {"name": "go", "data": {"by": "Ada"}})
        found = await served.until(started, "completed")
        assert found["result"]["by"] == "Ada"
        told = await served.json("POST", f"/api/executions/{started}/signal", {"name": "go"}, 409)
        assert told["fix"]


async def test_cancelling_tells_the_reason_and_who(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        started = await served.start(WAITS)
        told = await served.json("POST", f"/api/executions/{started}/cancel", {"reason": "wrong date"})
        assert told["status"] == "cancelled"
        found = await served.json("GET", f"/api/executions/{started}")
        assert found["error"]["message"] == "wrong date"
        events = (await served.json("GET", f"/api/executions/{started}/events?type=execution.cancelled"))["events"]
        assert events[0]["payload"]["by"] == "local"


async def test_cancelling_undoes_what_was_done_if_asked(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        undo = "  - {step: pay, tool: {kind: noop, result: 7}, compensate: refund, next: ask}\n"
        book = WAITS.replace("workflow:\n", "workflow:\n" + undo)
        started = await served.start(book + "  - {step: refund, tool: {kind: noop, result: '{{ pay }}'}}\n")
        await served.until(started, "waiting")
        path = f"/api/executions/{started}/cancel"
        told = await served.json("POST", path, {"run": "pay#1", "compensate": True}, 422)
        assert told["where"] == "$.compensate"
        await served.json("POST", path, {"compensate": True})
        assert (await served.until(started, "cancelled"))["compensated"] is True
        path = f"/api/executions/{started}/events?type=step.done"
        assert [event["entity_id"] for event in (await served.json("GET", path))["events"]] == ["pay", "refund"]


async def test_a_failed_execution_is_retried_from_the_step_that_failed(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(FAILS)
        await served.until(started, "failed")
        retried = await served.json("POST", f"/api/executions/{started}/retry", {"ctx": {"n": 1}}, 201)
        found = await served.until(retried["execution_id"], "completed", "failed")
        assert found["status"] == "completed", found
        assert found["result"] == 1
        forked = await served.json("POST", f"/api/executions/{started}/fork", {"start": "first"}, 201)
        await served.until(forked["execution_id"], "failed")
        await served.json("POST", f"/api/executions/{started}/fork", {"start": "nowhere"}, 400)
        await served.json("POST", f"/api/executions/{retried['execution_id']}/retry", {}, 409)


async def test_a_step_that_is_forced_counts_as_done(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(GATED)
        await served.until(started, "waiting")
        place = f"/api/admin/executions/{started}/steps"
        await served.json("POST", f"{place}/after/force-complete", {}, 409)
        await served.json("POST", f"{place}/gated/force-complete", {"result": "by hand"})
        assert (await served.until(started, "completed"))["result"] == "by hand"
        waiting = await served.start(WAITS)
        await served.until(waiting, "waiting")
        await served.json("POST", f"/api/admin/executions/{waiting}/steps/ask/force-complete", {"result": 4})
        assert (await served.until(waiting, "completed"))["result"] == 4


async def test_an_ended_execution_is_deleted_and_a_running_one_is_not(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started, waiting = await served.start(ONE), await served.start(WAITS)
        await served.until(started, "completed")
        await served.json("DELETE", f"/api/executions/{waiting}", None, 409)
        await served.json("DELETE", f"/api/executions/{started}")
        await served.json("GET", f"/api/executions/{started}", None, 404)


async def test_priority_orders_the_work_of_executions(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        low, high = await served.start(ONE), await served.start(ONE, priority=5)
        leases = await served.services.store.claim("w", [""], 2, served.services.clock.now(), 2**50)
        assert [lease.work.execution_id for lease in leases] == [high, low]


async def test_every_act_is_in_the_audit_trail(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        started = await served.start(WAITS)
        await served.json("POST", f"/api/executions/{started}/cancel", {"reason": "no"})
        entries = (await served.json("GET", "/api/audit"))["entries"]
        assert [(one["actor"], one["action"], one["entity"]) for one in entries] == [
            ("local", "execution.cancel", started),
            ("local", "execution.start", started),
            ("local", "playbook.register", "test/waits"),
        ]
        assert entries[0]["detail"] == {"reason": "no", "run": None}
        (one,) = (await served.json("GET", f"/api/audit?entity={started}&limit=1"))["entries"]
        assert one["action"] == "execution.cancel"


@pytest.mark.asyncio
async def test_a_retry_waits_for_the_limit_of_its_playbook(tmp_path: Path) -> None:
    def limited(on_limit: str) -> str:
        executor = {"spec": {"concurrency": {"limit": 1, "key": "k", "on_limit": on_limit}}}
        steps = (
            "  - step: one\n    tool: {kind: noop}\n    next: [{step: bad, when: '{{ workload.fails }}'}, {step: ask, when: '{{ not workload.fails }}'}]\n"
            "  - {step: ask, tool: {kind: wait, signal: go}}\n"
            "  - {step: bad, tool: {kind: python, code: 'result = 1 / 0'}}\n"
        )
        return playbook(steps, on_limit, executor=executor, workload={"fails": False})

    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        failed = [await served.start(limited("queue"), payload={"fails": True})]
        await served.until(failed[0], "failed")
        failed.append(await served.start(limited("reject"), payload={"fails": True}))
        await served.until(failed[1], "failed")
        holder = await served.start(limited("queue"))
        await served.until(holder, "waiting")
        made = await served.json("POST", f"/api/executions/{failed[0]}/retry", {}, 201)
        assert made["status"] == "pending"
        told = await served.json("GET", f"/api/executions/{made['execution_id']}/explain")
        assert [one["what"] for one in told["standing"]] == ["execution"]
        assert "place 1 in line" in told["standing"][0]["waits_for"]
        refused = await served.json("POST", f"/api/executions/{failed[1]}/retry", {}, 409)
        assert refused["type"].endswith("#limit-reached")
        await served.json("POST", f"/api/executions/{holder}/signal", {"name": "go"})
        assert (await served.until(made["execution_id"], "failed"))["error"] is not None


async def test_a_start_beyond_a_limit_that_rejects_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = {"spec": {"concurrency": {"key": "k", "on_limit": "reject"}}}
    limited = playbook("  - {step: ask, tool: {kind: wait, signal: go}}\n", "limited", executor=executor)
    async with in_process(tmp_path) as served:
        holder = await served.start(limited)
        path = (await served.json("GET", f"/api/executions/{holder}"))["path"]
        submit, tries = served.services.control.submit, list[str]()

        async def counted(execution_id: str, *sent: Any) -> Any:
            tries.append(execution_id)
            return await submit(execution_id, *sent)

        monkeypatch.setattr(served.services.control, "submit", counted)
        refused = await served.json("POST", "/api/execute", {"path": path}, 409)
        assert refused["type"].endswith("#limit-reached")
        assert refused["detail"] == (
            "1 executions with the concurrency key 'k' run already, and `executor.spec.concurrency.on_limit` is "
            "`reject`. Start it again later."
        )
        assert len(tries) == 1


async def test_the_list_is_filtered_by_prefix_ids_and_signals(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        waits, one = await served.start(WAITS), await served.start(ONE)
        await served.until(waits, "waiting")
        await served.until(one, "completed")

        async def ids(**given: Any) -> list[str]:
            found = await served.json("GET", "/api/executions", params=given)
            return [row["execution_id"] for row in found["executions"]]

        assert await ids(path="test/*") == [one, waits]
        assert await ids(path="test/w*") == [waits]
        assert await ids(path="test/w") == []
        assert await ids(needs_signal="true") == [waits]
        assert await ids(ids=[one, "17"]) == [one]
        await served.json("GET", "/api/executions?ids=x", status=404)


async def test_events_are_found_by_run_text_and_backwards(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(FAILS, payload={"password": "hunter2", "note": "hunter"})
        await served.until(started, "failed")

        async def found(**given: Any) -> Any:
            return await served.json("GET", f"/api/executions/{started}/events", params=given)

        every = (await found())["events"]
        runs = (await found(run="bad#1"))["events"]
        assert runs == [event for event in every if event["step_run_id"] == "bad#1"] != []
        assert [event["event_type"] for event in (await found(text="zerodivision", type="step.*"))["events"]] == [
            "step.failed"
        ]
        assert (await found(text="hunter2"))["events"] == []
        assert (await found(text="HUNTER"))["events"] != []
        assert (await found(iteration=0))["events"] == []
        page = await found(before=len(every) + 1, limit=3)
        assert (page["events"], page["previous"], page["next"]) == (every[-3:], every[-3]["seq"], None)
        page = await found(before=page["previous"], limit=1_000)
        assert (page["events"], page["previous"]) == (every[:-3], None)
        assert (await found(before=1))["events"] == []


async def test_a_search_says_how_far_it_looked_and_goes_on_from_there(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        rows = {number: {"status": "completed", "path": "usual", "started_at": number} for number in range(1, 10_012)}
        rows[3]["path"] = rows[10_005]["path"] = "rare"
        await served.services.store.commit([commit(str(number), projection=row) for number, row in rows.items()])
        first = await served.json("GET", "/api/executions", params={"search": "rare"})
        assert [row["execution_id"] for row in first["executions"]] == ["10005"]
        assert (first["next"], first["scanned_to"], first["scanned_at"]) == (None, "12", 12)
        more = await served.json("GET", "/api/executions", params={"search": "rare", "cursor": first["scanned_to"]})
        assert [row["execution_id"] for row in more["executions"]] == ["3"]
        assert (more["next"], more["scanned_to"]) == (None, None)
        page = await served.json("GET", "/api/executions", params={"search": "usual", "limit": 2})
        assert (page["next"], page["scanned_to"]) == ("10010", None)
