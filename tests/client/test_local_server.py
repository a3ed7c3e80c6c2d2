"""The token file of a server: who finds it, for which address."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from pathlib import Path

import pytest

from noetl.client.http import Http, Servers
from noetl.client.local_server import LocalServer, local_server, offered_token, token_folder
from noetl.model.errors import InvalidInput


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_a_server_that_stops_late_leaves_the_token_of_the_next_one() -> None:
    with ExitStack() as later:
        with offered_token("127.0.0.1", 8082):
            token = later.enter_context(offered_token("127.0.0.1", 8082))
        assert local_server("http://127.0.0.1:8082").token == token
    assert local_server("http://127.0.0.1:8082").token is None


def test_a_token_is_in_a_private_file_while_its_server_runs() -> None:
    before = os.umask(0)
    try:
        with offered_token("127.0.0.1", 8082) as token:
            (file,) = token_folder().iterdir()
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(token_folder().stat().st_mode) == 0o700
            assert local_server("http://127.0.0.1:8082") == LocalServer("http://127.0.0.1:8082", token, file)
    finally:
        os.umask(before)
    assert list(token_folder().iterdir()) == []
    assert local_server("http://127.0.0.1:8082").token is None


def test_each_start_has_another_token() -> None:
    with offered_token("127.0.0.1", 8082) as one:
        pass
    with offered_token("127.0.0.1", 8082) as two:
        assert len({one, two}) == 2


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8083",
        "http://127.0.0.2:8082",
        "http://[::1]:8082",
        "http://10.0.0.1:8082",
        "http://noetl.example:8082",
        "http://127.0.0.1.evil.example:8082",
        "http://localhost.evil.example:8082",
        "https://127.0.0.1:8082",
        "http://127.0.0.1@evil.example:8082",
        "http://127.0.0.1:99999",
        "nonsense",
    ],
)
def test_a_token_goes_to_its_own_address_only(url: str) -> None:
    with offered_token("127.0.0.1", 8082):
        assert local_server(url) == LocalServer(url)


def test_localhost_becomes_the_address_that_has_the_token() -> None:
    """Another user may listen on the other address of that name."""
    with offered_token("127.0.0.1", 8082) as token:
        found = local_server("http://localhost:8082")
        assert (found.url, found.token) == ("http://127.0.0.1:8082", token)
    with offered_token("::1", 8082) as token:
        found = local_server("http://localhost:8082")
        assert (found.url, found.token) == ("http://[::1]:8082", token)
    assert local_server("http://localhost:8082") == LocalServer("http://localhost:8082")


def test_a_given_token_comes_first() -> None:
    with offered_token("127.0.0.1", 8082):
        assert Http(Servers(["http://127.0.0.1:8082"]), "given").reach().token == "given"


def test_a_folder_that_cannot_be_written_is_explained(home: Path) -> None:
    (home / "noetl").write_text("in the way")
    with pytest.raises(InvalidInput, match="XDG_STATE_HOME"), offered_token("127.0.0.1", 8082):
        pass


def test_a_user_without_a_home_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda text: text)
    with pytest.raises(InvalidInput, match="XDG_STATE_HOME"), offered_token("127.0.0.1", 8082):
        pass
    assert local_server("http://127.0.0.1:8082").token is None
