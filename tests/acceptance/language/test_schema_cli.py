"""`noetl schema` as people call it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from jsonschema import Draft202012Validator


def schema(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "noetl", "schema", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def test_it_prints_a_schema_and_nothing_else() -> None:
    done = schema()
    assert (done.returncode, done.stderr) == (0, "")
    Draft202012Validator.check_schema(json.loads(done.stdout))
    assert done.stdout.endswith("}\n")


def test_files_of_tests_have_a_schema_too() -> None:
    done = schema("tests")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    Draft202012Validator.check_schema(found)
    assert {"tests", "mocks", "saga"} <= found["properties"].keys()


def test_it_writes_the_same_to_a_file(tmp_path: Path) -> None:
    done = schema("--output", str(tmp_path / "noetl.schema.json"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "noetl.schema.json").read_text(encoding="utf-8") == schema().stdout


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    done = schema("--output", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == f"noetl: Cannot write {tmp_path}: Is a directory.\n"
