"""Playbooks of older dialects run unchanged, and their upgrades do the same.

NOETL_UPDATE_GOLDEN=1 writes the recorded trees, diagnostics and events anew; read what changed before you commit it.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import yaml

from noetl.dsl.dialects.lowering import LOWERINGS, lower
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.upgrade import upgrade
from noetl.model.refs import expanded
from noetl.testing.scenario import Played
from tests.dialects.cases import FILES, HERE, Case, cases, diagnosed, events, played, tree

UPDATE = os.environ.get("NOETL_UPDATE_GOLDEN") == "1"
CASES = cases()
SOUND = [case for case in CASES if not case.is_broken]
GOLDEN: dict[str, dict[str, Any]] = {}


def name_of(case: Case) -> str:
    return f"{case.file}: {case.name}"


def recorded(case: Case) -> dict[str, Any]:
    path = HERE / f"{case.file}.golden.yaml"
    if case.file not in GOLDEN:
        GOLDEN[case.file] = yaml.load(path.read_text(), yaml.CSafeLoader) if path.exists() else {}
    found: dict[str, Any] = GOLDEN[case.file].setdefault(case.name, {})
    return found


def compare(case: Case, what: str, found: Any) -> None:
    """Compare with what is recorded of a case, or record it."""
    before = recorded(case)
    if UPDATE:
        before[what] = found
        text = yaml.dump(GOLDEN[case.file], Dumper=yaml.CSafeDumper, sort_keys=False, width=140, allow_unicode=True)
        (HERE / f"{case.file}.golden.yaml").write_text(text)
    assert found == before[what]


def test_there_are_enough_of_each_and_each_has_a_name_of_its_own() -> None:
    names = [name_of(case) for case in CASES]
    assert len(set(names)) == len(names)
    for file in ("v1", "v2", "spellings"):
        assert sum(case.file == file for case in CASES) >= 40
    for file in FILES:
        known = {case.name for case in CASES if case.file == file}
        assert set(yaml.safe_load((HERE / f"{file}.golden.yaml").read_text())) == known


def test_every_lowering_is_shown() -> None:
    used = {change.lowering.name for case in CASES for change in lower(parse(case.playbook)).changes}
    assert used == set(LOWERINGS)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_its_tree_and_its_diagnostics(case: Case) -> None:
    found = diagnosed(case.playbook)
    compare(case, "diagnostics", found)
    compare(case, "tree", tree(case.playbook))
    errors = [line for line in found if line.startswith("error")]
    assert bool(errors) == case.is_broken
    assert sum("NOE801" in line or "NOE802" in line for line in found) <= 1


@pytest.mark.parametrize("case", SOUND, ids=name_of)
def test_it_runs_unchanged_and_its_upgrade_does_the_same(case: Case) -> None:
    found = played(case, case.playbook)
    assert found.refused is None
    expected(case, found)
    compare(case, "events", events(found).splitlines())
    made = upgrade(case.playbook)
    assert made.problem == ""
    assert lower(parse(made.text)).changes == ()
    assert normalize(parse(made.text)) == normalize(parse(case.playbook))
    assert not [line for line in diagnosed(made.text) if line.startswith("error") or "NOE80" in line]
    again = played(case, made.text)
    assert events(again) == events(found)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_an_upgrade_is_idempotent_and_never_loses_a_comment(case: Case) -> None:
    made = upgrade(case.playbook)
    again = upgrade(made.text)
    assert again.text == made.text
    assert sorted(comments(made.text)) == sorted(comments(case.playbook))


def comments(text: str) -> list[str]:
    return [line.split("# ", 1)[1].strip() for line in text.splitlines() if "# " in line]


def expected(case: Case, found: Played) -> None:
    expect = case.expect
    assert found.live is not None
    assert found.live.status == expect.get("status", "completed"), found.live.error
    if "runs" in expect:
        runs = [str(event.step_run_id) for event in found.events if event.event_type == "step.scheduled"]
        assert list(dict.fromkeys(run.removesuffix("#1") for run in runs)) == expect["runs"].split()
    if "skipped" in expect:
        skipped = [event.entity_id for event in found.events if event.event_type == "step.skipped"]
        assert skipped == expect["skipped"].split()
    if "result" in expect:
        assert expanded(found.live.result) == expect["result"]
    for key, value in (expect.get("ctx") or {}).items():
        assert found.live.ctx[key] == value
    if "calls" in expect:
        assert [name for _, name, _ in found.tools.calls] == expect["calls"].split()
    for name, fields in (expect.get("seen") or {}).items():
        calls = [seen for called, seen in found.tools.seen if called == name]
        wanted = fields if isinstance(fields, list) else [fields]
        assert [{key: call.get(key) for key in want} for call, want in zip(calls, wanted, strict=True)] == wanted
