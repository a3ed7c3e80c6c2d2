"""`noetl credential` on a local store and on a server: values are never printed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.acceptance.run import Ran, noetl
from tests.acceptance.running import Folder
from tests.server.serving import listening

SECRET = "s3cret-value-of-the-api"


def test_a_local_put_says_when_the_credential_was_created(folder: Folder) -> None:
    rows = []
    for version in (1, 2):
        done = folder.call("credential", "put", "api", "--data", '{"token": "' + SECRET + '"}', "--json")
        rows.append(json.loads(done.out))
        assert rows[-1]["version"] == version
        assert 0 < rows[-1]["created_at"] <= rows[-1]["updated_at"]
    assert rows[0]["created_at"] == rows[1]["created_at"]


def put(folder: Folder, name: str, kind: str, data: object) -> Ran:
    given = json.dumps(data).encode()
    return noetl("credential", "put", name, "--kind", kind, "--data", "-", cwd=folder.path, stdin=given)


def test_a_local_run_reads_what_was_stored(folder: Folder) -> None:
    stored = put(folder, "api", "bearer", {"token": SECRET})
    assert (stored.code, stored.out) == (0, "api version 1\n"), stored.err
    file = folder.playbook(
        """
        - step: a
          tool: { kind: python, auth: api, code: "result = len(auth['token'])" }
        """
    )
    ran = folder.run(file)
    assert ran.status == "completed"
    shown = folder.call("credential", "show", "api", "--json")
    found = json.loads(shown.out)
    assert (found["fields"], found["used_by"]) == (["token"], ran.data["execution_id"])
    listed = folder.call("credential", "list")
    assert listed.out.split()[:2] == ["api", "bearer"]
    text = folder.call("credential", "show", "api")
    assert f"by execution {ran.data['execution_id']}" in text.out
    for one in (stored, shown, listed, text, folder.call("events", "last", "--json")):
        assert SECRET not in one.out + one.err
    for kept in filter(Path.is_file, (folder.path / ".noetl").glob("noetl.db*")):
        assert SECRET.encode() not in kept.read_bytes()
    assert folder.call("credential", "delete", "api").code == 0
    gone = folder.call("credential", "show", "api")
    assert (gone.code, "No credential `api` in this store" in gone.err) == (2, True)
    assert "unknown credential" in folder.call("run", file).err


def test_the_master_key_of_a_store_is_rotated(folder: Folder) -> None:
    assert put(folder, "api", "bearer", {"token": SECRET}).code == 0
    before = json.loads(folder.call("key", "list", "--json").out)
    done = folder.call("key", "rotate")
    after = json.loads(folder.call("key", "list", "--json").out)
    assert (done.code, done.out) == (0, f"1 data key is now wrapped by the master key {after['master']}\n"), done.err
    assert before["master"] != after["master"]
    assert [one["key_id"] for one in before["keys"]] == [one["key_id"] for one in after["keys"]]
    assert json.loads(folder.call("credential", "show", "api", "--json").out)["fields"] == ["token"]


def test_a_rotation_names_the_stores_that_need_the_older_key(folder: Folder) -> None:
    other = folder.path / ".noetl" / "other.db"
    assert put(folder, "api", "bearer", {"token": SECRET}).code == 0
    given = ("credential", "put", "api", "--data", '{"token": "' + SECRET + '"}', "--store", str(other))
    assert folder.call(*given).code == 0
    done = folder.call("key", "rotate")
    assert (done.code, f"Run `noetl key rotate --store {other}`" in " ".join(done.err.split())) == (0, True), done.err
    assert json.loads(folder.call("credential", "show", "api", "--store", str(other), "--json").out)["fields"] == [
        "token"
    ]
    assert folder.call("key", "rotate", "--store", str(other)).err.count("may need") == 1
    assert folder.call("key", "rotate", "--store", str(other)).code == 0


def test_a_store_that_does_not_exist_is_refused_and_not_created(folder: Folder) -> None:
    assert put(folder, "api", "bearer", {"token": SECRET}).code == 0
    key = (folder.path / ".noetl" / "key").read_text()
    gone = folder.path / ".noetl" / "gone.db"
    for command in (("key", "rotate"), ("key", "list"), ("credential", "list"), ("outbox", "list")):
        refused = folder.call(*command, "--store", str(gone))
        assert (refused.code, f"No store at {gone}" in " ".join(refused.err.split())) == (2, True), refused.err
        assert not gone.exists()
    assert (folder.path / ".noetl" / "key").read_text() == key


@pytest.mark.parametrize("name", ["", "a b/c", "..", "a\x1b"])
def test_a_wrong_name_is_refused(folder: Folder, name: str) -> None:
    refused = put(folder, name, "generic", {"token": SECRET})
    assert refused.code == 2
    assert "cannot be the name of a credential" in " ".join(refused.err.split())
    assert folder.call("credential", "list").out == ""


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        (
            "postgres",
            {"host": "h", "port": "many"},
            "$.data.port: `port` of a credential of type `postgres` is no port",
        ),
        ("oauth2", {"client_id": "a", "token_url": "auth"}, "Use a URL that begins with `https://`"),
        ("s3", {"access_key_id": "a"}, "needs `secret_access_key`"),
        ("mysqll", {"host": "h"}, "Did you mean 'mysql'?"),
    ],
)
def test_wrong_fields_are_named(folder: Folder, kind: str, data: dict[str, str], says: str) -> None:
    refused = put(folder, "x", kind, data)
    assert refused.code == 2
    assert says in " ".join(refused.err.split())
    assert folder.call("credential", "list").out == ""


def test_a_test_says_what_it_reached(folder: Folder) -> None:
    put(folder, "file", "sqlite", {"path": str(folder.path / ".noetl" / "noetl.db")})
    put(folder, "gone", "sqlite", {"path": str(folder.path / "none.db")})
    put(folder, "any", "generic", {"a": SECRET})
    good, bad, other = (folder.call("credential", "test", name) for name in ("file", "gone", "any"))
    assert (good.code, good.out.startswith("ok: SQLite file")) == (0, True), good.err
    assert (bad.code, bad.err.startswith("failed: Cannot open")) == (1, True)
    assert (other.code, other.err.startswith("not tested:")) == (0, True)


@pytest.mark.asyncio
async def test_a_server_is_asked_the_same(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:

        async def call(*given: str, stdin: bytes | None = None) -> Ran:
            return await asyncio.to_thread(
                lambda: noetl("credential", *given, "--server", served.url, cwd=tmp_path, stdin=stdin)
            )

        data = json.dumps({"api_key": SECRET}).encode()
        assert (await call("put", "key", "--type", "api_key", "--data", "-", stdin=data)).code == 0
        shown = await call("show", "key")
        assert "api_key" in shown.out
        assert SECRET not in shown.out
        tested = await call("test", "key", "--url", served.url + "/health")
        assert (tested.code, tested.out.startswith("ok: http://")) == (0, True), tested.err
        assert (await call("delete", "key")).code == 0
        assert (await call("show", "key")).code != 0
