"""`noetl schema` as people call it."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from tests.acceptance.run import Ran, noetl


def schema(*arguments: str) -> Ran:
    return noetl("schema", *arguments)


def test_it_prints_a_schema_and_nothing_else() -> None:
    done = schema()
    assert (done.code, done.err) == (0, "")
    Draft202012Validator.check_schema(json.loads(done.out))
    assert done.out.endswith("}\n")


def test_files_of_tests_have_a_schema_too() -> None:
    done = schema("tests")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    Draft202012Validator.check_schema(found)
    assert {"tests", "mocks", "saga"} <= found["properties"].keys()


def test_it_writes_the_same_to_a_file(tmp_path: Path) -> None:
    done = schema("--output", str(tmp_path / "noetl.schema.json"))
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (tmp_path / "noetl.schema.json").read_text(encoding="utf-8") == schema().out


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    done = schema("--output", str(tmp_path))
    assert done.code == 2
    assert done.err == f"noetl: Cannot write {tmp_path}: Is a directory.\n"
