"""Local commands on a PostgreSQL store set by the environment or an address."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.run import noetl
from tests.databases import fresh_database

EXAMPLE = Path(__file__).parents[3] / "examples" / "hello.yaml"


def test_a_playbook_runs_and_is_looked_at(tmp_path: Path) -> None:
    address = fresh_database()
    ran = noetl("run", str(EXAMPLE), cwd=tmp_path, NOETL_DB_URL=address)
    assert ran.code == 0, ran.err
    assert "Hello, world!" in ran.out
    assert f"in {address.rpartition('@')[2]}" in ran.err
    assert not (tmp_path / ".noetl" / "noetl.db").exists()
    assert "completed" in noetl("runs", "--store", address, cwd=tmp_path).out
    shown = noetl("status", "last", cwd=tmp_path, NOETL_DB_URL=address)
    assert "say: 1 done" in shown.out
    assert noetl("db", "check", cwd=tmp_path, NOETL_DB_URL=address).code == 0


def test_a_bad_address_is_told_in_a_line(tmp_path: Path) -> None:
    for given in ("mysql://x/y", "postgresql://127.0.0.1:1/none"):
        done = noetl("runs", cwd=tmp_path, NOETL_DB_URL=given)
        assert done.code in (1, 2)
        assert done.err.startswith("noetl: ")
        assert len(done.err.splitlines()) == 1
