"""`noetl.Client` against a real server: verbs, errors, following over a cut."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from noetl import Client
from noetl.client.history import RemoteHistory
from noetl.model.errors import Conflict, Denied, InvalidInput, InvalidPlaybook, UnknownExecution, Unreachable
from noetl.ports import Selection
from noetl.settings import ServerSettings
from tests.client.working import network, working
from tests.conformance.commits import commit
from tests.server.serving import FAILS, ONE, TWO, WAITS, listening

pytestmark = pytest.mark.asyncio


async def test_a_playbook_is_registered_run_and_looked_at(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, working(tmp_path, served.url), Client(served.url) as client:
        made = await client.register(TWO)
        assert (made.path, made.version) == ("test/two", 1)
        assert [one.path for one in (await client.playbooks()).playbooks] == ["test/two"]
        started = await client.execute("test/two", tags=["t"], idempotency_key="k")
        assert (await client.execute("test/two", idempotency_key="k")).execution_id == started.execution_id
        ended = await client.wait(started.execution_id)
        assert (ended.status, ended.result) == ("completed", 2)
        events = await client.events(started.execution_id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        async with aclosing(client.follow(started.execution_id, after=3)) as following:
            assert [event async for event in following] == events[3:]
        assert [one.execution_id for one in (await client.executions(tag="t")).executions] == [started.execution_id]
        assert (await client.explain(started.execution_id)).status == "completed"
        assert (await client.state(started.execution_id, seq=1)).seq == 1
        assert [one.worker_id for one in await client.workers()] == ["w-1"]
        assert [one.pool for one in await client.pools()] == [""]


async def test_an_execution_is_steered(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, working(tmp_path, served.url), Client(served.url) as client:
        waiting = await client.execute(content=WAITS)
        await served.until(waiting.execution_id, "waiting")
        assert (await client.pause(waiting.execution_id)).execution_id == waiting.execution_id
        await client.resume(waiting.execution_id)
        await client.signal(waiting.execution_id, "go", {"by": "Ada"})
        assert (await client.wait(waiting.execution_id)).status == "completed"
        with pytest.raises(InvalidInput, match="has ended"):
            await client.signal(waiting.execution_id, "go")
        other = await client.execute(content=WAITS)
        await client.cancel(other.execution_id, "enough")
        assert (await client.wait(other.execution_id)).status == "cancelled"
        failed = await client.wait((await client.execute(content=FAILS)).execution_id)
        assert failed.status == "failed"
        forked = await client.fork(failed.execution_id, "bad", ctx={"n": 2})
        assert (await client.wait(forked.execution_id)).status == "completed"
        with pytest.raises(Conflict, match="failed"):
            await client.retry(waiting.execution_id)


async def test_a_search_goes_back_as_far_as_it_must(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, Client(served.url) as client:
        rows = {number: {"status": "completed", "path": "usual", "started_at": number} for number in range(1, 10_012)}
        rows[3]["path"] = rows[10_005]["path"] = "rare"
        await served.services.store.commit([commit(str(number), projection=row) for number, row in rows.items()])
        history = RemoteHistory(client)
        found = await history.executions(Selection(text="rare", limit=20))
        assert [row["execution_id"] for row in found] == ["10005", "3"]
        assert len(await history.executions(Selection(text="rare", limit=1))) == 1
        assert len(await history.executions(Selection(text="usual", limit=20))) == 20


async def test_a_list_longer_than_a_page_of_the_server_is_read_by_pages(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, Client(served.url) as client:
        rows = {number: {"status": "completed", "path": "p", "started_at": number} for number in range(1, 1_202)}
        await served.services.store.commit([commit(str(number), projection=row) for number, row in rows.items()])
        found = await RemoteHistory(client).executions(Selection(limit=1_200))
        assert [row["execution_id"] for row in found] == [str(number) for number in range(1_201, 1, -1)]
        assert len(await RemoteHistory(client).executions(Selection(limit=5_000))) == 1_201


async def test_versions_ctx_steps_and_acts_are_looked_after(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, working(tmp_path, served.url), Client(served.url) as client:
        for text in (WAITS, WAITS + "# again\n"):
            await client.register(text)
        assert [one.version for one in await client.versions("test/waits")] == [2, 1]
        assert (await client.playbook("test/waits", 1)).content == WAITS
        started = (await client.execute("test/waits", tags=["x"])).execution_id
        await served.until(started, "waiting")
        await client.patch(started, {"n": 5})
        assert (await client.status(started)).ctx["n"] == 5
        await client.complete(started, "ask", {"by": "hand"}, reason="it was agreed")
        ended = await client.wait(started)
        assert (ended.status, ended.result) == ("completed", {"by": "hand"})
        since = ended.started_at
        assert [one.execution_id for one in (await client.executions(since=since)).executions] == [started]
        assert (await client.executions(until=since)).executions == []
        assert (await client.unregister("test/waits", 1)).removed == 1
        assert (await client.delete(started)).status == "deleted"
        with pytest.raises(UnknownExecution):
            await client.status(started)
        acts = [one.action for one in await client.audit(entity=started)]
        assert acts == ["execution.delete", "step.force-complete", "execution.patch", "execution.start"]


async def test_credentials_and_tokens_are_kept(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, Client(served.url) as client:
        assert (await client.put_credential("pg_main", {"token": "secret"}, "bearer")).version == 1
        assert [one.name for one in await client.credentials()] == ["pg_main"]
        await client.delete_credential("pg_main")
        made = await client.create_token("viewer", "v", expires_s=60)
        assert made.secret.startswith("noetl_")
        assert [one.token_id for one in await client.tokens()] == [made.token_id]
        await client.revoke_token(made.token_id)


async def test_what_goes_wrong_is_said_in_words(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, Client(served.url) as client:
        with pytest.raises(InvalidPlaybook, match=r"\d+:\d+ error NOE"):
            await client.register(TWO.replace("kind: noop", "kind: nope"))
        with pytest.raises(InvalidInput, match="The catalog has no"):
            await client.execute("no/such")
        with pytest.raises(UnknownExecution, match="12345"):
            await client.status("12345")
        made = await client.create_token("viewer")
    async with listening(tmp_path, ServerSettings(auth="token")) as served:
        async with Client(served.url, made.secret) as client:
            assert (await client.executions()).executions == []
            with pytest.raises(Denied, match="operator"):
                await client.execute("no/such")
        async with Client(served.url, "wrong") as client:
            with pytest.raises(Denied, match="not known"):
                await client.executions()
    async with Client("http://127.0.0.1:9") as client:
        with pytest.raises(Unreachable, match="cannot be reached"):
            await client.executions()


async def test_following_goes_on_after_a_cut_without_a_gap(tmp_path: Path) -> None:
    async with (
        listening(tmp_path) as served,
        network(served.url) as between,
        working(tmp_path, served.url),
        Client(between.url) as client,
    ):
        started = await client.execute(content=WAITS)
        await served.until(started.execution_id, "waiting")
        seen: list[int] = []
        async with aclosing(client.follow(started.execution_id)) as following:
            async for event in following:
                seen.append(event.seq)
                if event.event_type == "step.suspended":
                    between.cut()
                    await served.json("POST", f"/api/executions/{started.execution_id}/signal", {"name": "go"})
        assert seen == list(range(1, len(seen) + 1))
        assert len(seen) == (await client.status(started.execution_id)).last_seq


async def test_many_are_started_by_one_call_and_waited_for(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, working(tmp_path, served.url), Client(served.url) as client:
        await client.register(ONE)
        told = await client.execute_many(
            "test/one", [{"n": number} for number in range(5)], tags=["t"], idempotency_key="k", wait_ms=30_000
        )
        assert [one.result for one in told.executions] == [0, 1, 2, 3, 4]
        assert told.counts == {"completed": 5}
        again = await client.execute_many("test/one", [{"n": number} for number in range(5)], idempotency_key="k")
        assert [one.execution_id for one in again.executions] == [one.execution_id for one in told.executions]
        assert all(one.repeated for one in again.executions)
        with pytest.raises(Conflict, match="other payloads"):
            await client.execute_many("test/one", [{}], idempotency_key="k")
        for count in (0, 1_001):
            with pytest.raises(InvalidInput, match=r"\$\.payloads"):
                await client.execute_many("test/one", [{}] * count)
