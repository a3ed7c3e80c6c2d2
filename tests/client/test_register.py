"""`noetl register` against a real server: files, folders, called playbooks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from noetl import Client
from tests.acceptance.run import Ran, noetl
from tests.client.working import working
from tests.server.serving import Served, listening, playbook

pytestmark = pytest.mark.asyncio
CHILD = playbook(
    "  - step: twice\n    tool: {kind: noop, result: '{{ workload.n * 2 }}'}\n", "child", workload={"n": 1}
)


def caller(path: str, name: str = "caller") -> str:
    return playbook(
        f"  - step: call  # a comment stays\n    tool: {{kind: playbook, path: {path}, input: {{n: 21}}}}\n", name
    )


async def register(served: Served, folder: Path, *names: str) -> Ran:
    return await asyncio.to_thread(noetl, "register", *names, "--server", served.url, "--json", cwd=folder)


@pytest.mark.parametrize("path", ["below/child.yaml", "./below/child.yaml", "'below/child.yaml'", "test/child"])
async def test_a_child_is_registered_with_its_caller_and_called_by_its_path(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "books"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "child.yaml").write_text(CHILD)
    (folder / "caller.yaml").write_text(caller(path))
    async with listening(tmp_path) as served, working(tmp_path, served.url), Client(served.url) as client:
        ran = await register(served, folder, "caller.yaml")
        assert ran.code == 0, ran.err
        assert [json.loads(line)["path"] for line in ran.out.splitlines()] == ["test/child", "test/caller"]
        started = await client.execute("test/caller")
        assert (await client.wait(started.execution_id)).result == 42
        kept = await served.json("GET", "/api/catalog/playbook?path=test/caller")
        assert "# a comment stays" in kept["content"]
        assert ".yaml" not in kept["content"]
        again = await register(served, folder, "caller.yaml")
        assert {json.loads(line)["version"] for line in again.out.splitlines()} == {1}


async def test_a_folder_is_registered_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "a.yaml").write_text(CHILD)
    (folder / "b.yaml").write_text(caller("a.yaml"))
    (folder / "other.yaml").write_text("not: a playbook\n")
    async with listening(tmp_path) as served:
        (folder / "c.yaml").write_text(CHILD.replace("noop", "nosuch").replace("child", "broken"))
        ran = await register(served, folder, ".")
        assert ran.code == 2
        assert "c.yaml" in ran.err
        assert "nosuch" in ran.err
        assert (await served.json("GET", "/api/catalog"))["playbooks"] == []
        (folder / "c.yaml").unlink()
        ran = await register(served, folder, ".")
        assert [json.loads(line)["path"] for line in ran.out.splitlines()] == ["test/child", "test/caller"]
        empty = tmp_path / "empty"
        empty.mkdir()
        ran = await register(served, empty, ".")
        assert (ran.code, "no playbooks in this folder" in ran.err) == (2, True)


SUBSCRIPTION = """\
apiVersion: noetl.io/v2
kind: Subscription
metadata: {name: drop, path: test/a_drop}
spec: {source: folder, stream: /srv/drop, dispatch: {playbook: child.yaml}, activation: manual}
"""


async def test_a_subscription_is_registered_after_the_playbook_that_it_starts(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "child.yaml").write_text(CHILD)
    (folder / "a.yaml").write_text(SUBSCRIPTION)
    async with listening(tmp_path) as served:
        ran = await register(served, folder, ".")
        assert ran.code == 0, ran.err
        assert [json.loads(line)["path"] for line in ran.out.splitlines()] == ["test/child", "test/a_drop"]
        [row] = (await served.json("GET", "/api/subscriptions"))["subscriptions"]
        assert (row["path"], row["owner"], row["paused"]) == ("test/child", "test/a_drop", True)


async def test_a_source_that_no_server_can_read_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "child.yaml").write_text(CHILD)
    (folder / "a.yaml").write_text(SUBSCRIPTION.replace("folder", "nats"))
    async with listening(tmp_path) as served:
        ran = await register(served, folder, ".")
        assert ran.code == 0, ran.err
        assert "a.yaml:4: The source 'nats' cannot be read by this version of NoETL" in ran.err
        assert (await served.json("GET", "/api/subscriptions"))["subscriptions"] == []


async def test_unknown_keys_are_tolerated_if_asked(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "odd.yaml").write_text(CHILD.replace("kind: noop", "kind: noop, shade: 3"))
    async with listening(tmp_path) as served:
        assert (await register(served, folder, "odd.yaml")).code == 2
        ran = await register(served, folder, "odd.yaml", "--tolerant")
        assert ran.code == 0, ran.err


async def test_a_child_that_nobody_has_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "caller.yaml").write_text(caller("far/away"))
    async with listening(tmp_path) as served:
        ran = await register(served, folder, "caller.yaml")
        assert (ran.code, "caller.yaml calls `far/away`" in ran.err) == (0, True)
        await served.register(CHILD.replace("test/child", "far/away"))
        ran = await register(served, folder, "caller.yaml")
        assert (ran.code, ran.err) == (0, "")


async def test_playbooks_that_call_each_other_are_registered_once(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "one.yaml").write_text(caller("two.yaml", "one"))
    (folder / "two.yaml").write_text(caller("one.yaml", "two"))
    async with listening(tmp_path) as served:
        ran = await register(served, folder, "one.yaml", "two.yaml")
        assert [json.loads(line)["path"] for line in ran.out.splitlines()] == ["test/two", "test/one"], ran.err
        kept = await served.json("GET", "/api/catalog/playbook?path=test/two")
        assert 'path: "test/one"' in kept["content"]
