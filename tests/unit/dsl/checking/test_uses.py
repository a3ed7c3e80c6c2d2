"""What a playbook needs of the installation, with its place."""

from __future__ import annotations

import pytest

from noetl.dsl.checking.requirements import lacking
from noetl.dsl.checking.uses import uses
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.pin import pinned, unpinned
from noetl.dsl.tree.playbook import Playbook
from tests.unit.dsl.rules.samples import HEAD, indented

PLAYBOOK = """\
executor: { spec: { result: { store: { kind: s3, compression: zstd } } } }
workbook:
  - { name: used, kind: nats, operation: publish }
  - { name: unused, kind: mcp, server: s, tool: t }
workflow:
  - step: rows
    loop: { iterator: row, cursor: { kind: postgres, auth: pg, claim: SELECT 1, key: id } }
    tool: { kind: workbook, task: used }
    next: copy
  - step: copy
    spec: { result: { store: gcs } }
    tool:
      - move: { kind: transfer, source: { kind: s3, path: a.csv }, target: { kind: snowflake, table: t } }
      - save: { kind: artifact, action: put, data: x, store: { kind: azure, compression: lz4 } }
      - load: { kind: duckdb, script: { uri: "s3://b/a.sql" } }
      - call: { kind: script, uri: x.sh, source: { type: gcs }, spec: { result: { store: "{{ workload.s }}" } } }
"""
WANTED = {
    ("store", "s3"), ("compression", "zstd"), ("kind", "nats"), ("kind", "postgres"), ("kind", "workbook"),
    ("store", "gcs"), ("kind", "transfer"), ("transfer source", "s3"), ("transfer target", "snowflake"),
    ("kind", "artifact"), ("store", "azure"), ("compression", "lz4"), ("kind", "duckdb"), ("script source", "s3"),
    ("kind", "script"), ("script source", "gcs"),
}  # fmt: skip


def read(body: str) -> Playbook:
    return normalize(parse(HEAD + indented(body, 0), "p.yaml"))


def test_everything_that_is_needed_is_found_and_nothing_else() -> None:
    assert {(use.what, use.name) for use in uses(read(PLAYBOOK))} == WANTED


def test_a_pinned_playbook_needs_the_same() -> None:
    stored = unpinned(pinned(read(PLAYBOOK))[0])
    assert {(use.what, use.name) for use in uses(stored)} == WANTED


@pytest.mark.parametrize(
    ("what", "name", "owner"),
    [("kind", "nats", "workbook task 'used'"), ("store", "s3", "`executor`"), ("script source", "gcs", "step 'copy'")],
)
def test_what_is_missing_is_named_with_its_place_and_the_advice(what: str, name: str, owner: str) -> None:
    def unavailable(asked: str, given: str) -> str | None:
        return "install it" if (asked, given) == (what, name) else None

    said = f"{owner} needs the {what} `{name}`, which cannot be used here: install it"
    assert lacking(read(PLAYBOOK), unavailable=unavailable) == said


def test_a_playbook_that_has_all_it_needs_lacks_nothing() -> None:
    assert lacking(read(PLAYBOOK), unavailable=lambda what, name: None) is None
