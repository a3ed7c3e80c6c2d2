"""Each example has a heading comment, is listed in the README and is formatted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from tests.acceptance.run import noetl
from tests.docs.pages import ROOT, links, name

FOLDER = ROOT / "examples"
EVERYTHING = sorted(path for path in FOLDER.rglob("*.yaml") if path.parent.name != "broken")
EXAMPLES = [path for path in EVERYTHING if ".test." not in path.name]
TESTS = [path for path in EVERYTHING if ".test." in path.name]


def test_all_are_formatted() -> None:
    done = noetl("fmt", "--check", *map(str, EXAMPLES))
    assert done.code == 0, done.out + done.err


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_the_path_is_the_place_of_the_file(example: Path) -> None:
    playbook = normalize(parse(example.read_bytes(), example.name))
    place = example.relative_to(ROOT).with_suffix("").as_posix()
    assert (playbook.name, playbook.path) == (example.stem, place)


@pytest.mark.parametrize("example", [path for path in EXAMPLES if path.stem != "hello"], ids=name)
def test_the_first_lines_say_what_it_is_and_its_metadata_what_it_does(example: Path) -> None:
    assert example.read_text(encoding="utf-8").startswith("# ")
    assert "description" in normalize(parse(example.read_bytes(), example.name)).metadata


def test_the_page_lists_them_all() -> None:
    listed = set(links((FOLDER / "README.md").read_text(encoding="utf-8")))
    assert {path.relative_to(FOLDER).as_posix() for path in EXAMPLES} <= listed


def test_all_tests_of_examples_pass_and_their_sagas_break_nothing() -> None:
    done = noetl("test", "examples", "--json", cwd=ROOT)
    assert done.code == 0, done.out + done.err
    report = json.loads(done.out)
    assert len(report["files"]) == len(TESTS)
    sagas = {Path(file["file"]).name.removesuffix(".test.yaml"): file["sagas"] for file in report["files"]}
    assert {name for name, found in sagas.items() if found} >= {
        "money_transfer",
        "inventory",
        "trip",
        "reservations",
        "order",
    }
    rows = [row for found in sagas.values() for saga in found for row in saga["rows"]]
    assert sum(row["broken"] for row in rows) == 0
    assert sum(row["plays"] for row in rows) >= 150


@pytest.mark.chaos
def test_sagas_of_examples_break_nothing_when_the_process_dies_before_any_commit() -> None:
    done = noetl("test", "examples/sagas", "--saga", "--crash", cwd=ROOT)
    assert done.code == 0, done.out + done.err
