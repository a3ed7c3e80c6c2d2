"""Kind `secrets`: a value for the tasks of one pipeline, masked elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.acceptance.running import Folder
from tests.tools.attempts import Attempts

SECRET = "s3cret-of-the-orders"


@pytest_asyncio.fixture
async def attempts() -> AsyncIterator[Attempts]:
    made = Attempts({"orders": {"token": SECRET}, "db": {"user": "ada", "password": SECRET}})
    yield made
    await made.close()


@pytest.mark.asyncio
async def test_a_stored_secret_is_its_value_or_one_field(attempts: Attempts) -> None:
    whole = (await attempts.run("secrets", {"secret": "orders"})).result
    assert whole == {"value": SECRET, "version": None, "provider": "stored", "secret": "orders"}
    field = (await attempts.run("secrets", {"secret": "db", "field": "password"})).result
    assert field["value"] == SECRET


@pytest.mark.asyncio
async def test_what_cannot_be_read_says_why(attempts: Attempts) -> None:
    for fields, words in (
        ({"secret": "none"}, "Store it with `noetl credential put none`"),
        ({"secret": "db", "field": "pasword"}, "has no field `pasword`"),
        ({"secret": "x", "provider": "keybox"}, "no secret manager `keybox`"),
        ({"secret": "x", "provider": "vault"}, "Set `url`"),
        ({"secret": "NO_SUCH_VARIABLE", "provider": "env"}, "no variable `NO_SUCH_VARIABLE`"),
    ):
        error = (await attempts.run("secrets", fields)).error
        assert (error.kind, words in error.message) == ("auth", True), error


def test_later_tasks_see_the_value_and_the_log_the_mask(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    file = folder.playbook(
        """
        - step: a
          tool:
            - token: { kind: secrets, provider: file, secret: orders }
            - use: { kind: python, args: { t: "{{ token.value }}" }, code: "result = [len(t), t]" }
        """
    )
    mounted = folder.path / "mounted"
    mounted.mkdir()
    Path(mounted, "orders").write_text(SECRET)
    ran = folder.call("run", file, "--json", NOETL_SECRETS_FOLDERS=str(mounted))
    assert ran.code == 0, ran.err
    assert str(len(SECRET)) in ran.out
    assert SECRET not in ran.out + ran.err + folder.call("events", "last", "--json").out
    for kept in filter(Path.is_file, (folder.path / ".noetl").glob("noetl.db*")):
        assert SECRET.encode() not in kept.read_bytes()
    denied = folder.call("run", file)
    assert "NOETL_SECRETS_FOLDERS" in denied.err
