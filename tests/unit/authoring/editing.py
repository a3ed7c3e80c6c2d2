"""Helpers for tests of editor features: a playbook, a cursor, the good corpus."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from noetl.authoring.analysis.reading import Reading
from noetl.authoring.completion.complete import complete
from noetl.wiring.embedded import language_kinds
from tests.corpus.corpus import files

CURSOR = "‸"
HEAD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: cities, path: examples/cities }
keychain: [ { name: pg_main, kind: postgres } ]
workload: { cities: [ { name: Rome, lat: 41.9 } ], url: "http://127.0.0.1:1", nested: { deep: 1 } }
workbook: { tidy: { kind: noop, result: "{{ input.rows }}" } }
workflow:
  - step: fetch
    loop: { in: "{{ workload.cities }}", iterator: city }
    tool:
      - init: { kind: noop }
      - get:
          kind: http
          url: "{{ workload.url }}/{{ iter.city.name }}"
          set: { ctx.total: "{{ output.data.size }}", iter.page: 1 }
    next: { arcs: [ { step: store, label: onward, args: { rows: "{{ fetch.results }}" } } ] }
"""


def typed(text: str, catalog: tuple[str, ...] = ("etl/child",)) -> tuple[Reading, int]:
    """Return a reading of a text and the offset of the cursor in it."""
    offset = text.index(CURSOR)
    return Reading(text.replace(CURSOR, ""), "typed.yaml", language_kinds(), catalog), offset


def offered(text: str) -> list[str]:
    """Return the labels that completion offers at the cursor."""
    return [item.label for item in complete(*typed(text)).items]


@cache
def good() -> tuple[tuple[str, Reading], ...]:
    """Yield every good playbook of the corpus."""
    return tuple((path.name, reading_of(path)) for path in files("good"))


def reading_of(path: Path) -> Reading:
    return Reading(path.read_bytes().decode("utf-8"), path.name, language_kinds())
