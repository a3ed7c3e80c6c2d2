"""Secrets of the worker's machine: variables and mounted files."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl.model.errors import CredentialUnavailable
from noetl.worker.secrets.managers.access import Asked
from noetl.worker.secrets.managers.registry import read_secret, selected
from tests.unit.worker.secrets.managers.asking import accessing

pytestmark = pytest.mark.asyncio


async def test_a_variable_is_read_and_masked() -> None:
    async with accessing(environment={"API_TOKEN": "t0ken-of-the-api"}) as (access, secrets):
        assert (await read_secret("env", Asked("API_TOKEN"), access)).value == "t0ken-of-the-api"
        assert "t0ken" not in secrets.text("it said t0ken-of-the-api")
        with pytest.raises(CredentialUnavailable, match="no variable `NONE`"):
            await read_secret("env", Asked("NONE"), access)


async def test_a_mounted_file_is_read_as_kubernetes_links_it(tmp_path: Path) -> None:
    data = tmp_path / "db" / "..2026_11_17"
    data.mkdir(parents=True)
    (data / "password").write_text("hush-hush\n")
    (tmp_path / "db" / "..data").symlink_to(data)
    (tmp_path / "db" / "password").symlink_to(Path("..data") / "password")
    (tmp_path / "token").write_text("plain")
    async with accessing((str(tmp_path / "none"), str(tmp_path))) as (access, _):
        assert (await read_secret("kubernetes", Asked("db/password"), access)).value == "hush-hush"
        assert (await read_secret("docker", Asked("token"), access)).value == "plain"


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/b/c", ".hidden", "", "link"])
async def test_nothing_outside_of_the_folder_is_read(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "secrets"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "c").write_text("deep")
    (folder / ".hidden").write_text("dot")
    (tmp_path / "outside").write_text("out")
    (folder / "link").symlink_to(tmp_path / "outside")
    async with accessing((str(folder),)) as (access, _):
        with pytest.raises(CredentialUnavailable, match="secret file"):
            await read_secret("file", Asked(name), access)


async def test_an_unknown_provider_names_the_known_ones() -> None:
    async with accessing() as (access, _):
        with pytest.raises(CredentialUnavailable, match="no secret manager `keybox`"):
            await read_secret("keybox", Asked("x"), access)


async def test_a_field_is_selected_from_a_map_or_json() -> None:
    assert selected('{"a": 1}', "a", "s") == selected({"a": 1}, "a", "s") == 1
    assert selected("text", None, "s") == "text"
    for value in ("text", {"b": 1}):
        with pytest.raises(CredentialUnavailable, match="`s`"):
            selected(value, "a", "s")


async def test_a_package_adds_a_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from noetl.worker.secrets.managers.access import Found\n\nasync def read(asked, access):\n    return Found(asked.name * 2)\n"
    (tmp_path / "keybox_of_a_package.py").write_text(code)
    info = tmp_path / "keybox-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: keybox\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[noetl.secret_managers]\nkeybox = keybox_of_a_package\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    async with accessing() as (access, _):
        assert (await read_secret("keybox", Asked("twice-"), access)).value == "twice-twice-"
