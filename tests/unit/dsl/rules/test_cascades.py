"""One mistake is reported once: a misspelled key is not also missing."""

from __future__ import annotations

import re

import pytest

from tests.unit.dsl.rules.samples import report

PLAYBOOK = """\
keychain:
  - { name: crm, kind: oauth2 }
  - { name: pg, kind: postgres }
executor: { spec: { entry_step: start, final_step: report } }
workload: { api: "http://127.0.0.1", rows: [1, 2] }
policy: { rollback: on_fail }
workbook:
  shared: { kind: http, url: "{{ workload.api }}/{{ input.row }}" }
workflow:
  - step: start
    tool: { kind: http, url: "{{ workload.api }}", auth: crm }
    set: { ctx.token_count: 1 }
    compensate: undo
    next:
      spec: { mode: inclusive }
      arcs:
        - { step: each, args: { limit: 3 }, label: first }
        - { step: aside }
  - step: aside
    tool: { kind: postgres, auth: pg, query: SELECT 1 }
  - step: each
    spec:
      on_step_fail: "route_edge:failed"
      policy:
        admit:
          rules:
            - when: "{{ done('aside') and ctx.token_count > 0 }}"
              then: { allow: true }
    loop:
      in: "{{ workload.rows }}"
      iterator: row
      spec: { mode: parallel, reduce: { ctx.seen: append } }
    tool:
      - one: { kind: workbook, task: shared, args: { row: "{{ iter.row }}" } }
      - two:
          kind: noop
          message: "{{ one.data }} {{ row }} {{ loop_index }} {{ limit }} {{ args.limit }} {{ aside.row_count }}"
          set: { ctx.seen: "{{ iter.row }}" }
    next:
      arcs:
        - step: finish
        - { step: undo, label: failed, when: "{{ event.name == 'step.failed' }}" }
  - step: finish
    tool: { kind: noop, message: "{{ ctx.seen }} {{ token_count }} {{ each.results }}" }
  - step: undo
    tool: { kind: noop, message: "{{ keychain.crm.token }}" }
  - step: report
    tool: { kind: noop, message: "{{ counts }} {{ args.failures }}" }
"""
# A credential may have fields of its own, so these are not told.
FREE = PLAYBOOK.index("executor")
KEYS = [
    (found.start(), found.group())
    for found in re.finditer(r"(?<![\w.:'\"$])[a-z_]{2,}(?=: )|(?<![\w.])[a-z_]{3,}(?=:\n)", PLAYBOOK)
    if found.group() not in ("api", "rows", "row", "limit", "shared", "one", "two")
    and not (found.group() == "kind" and found.start() < FREE)
]


def test_the_playbook_itself_is_fine() -> None:
    assert report(PLAYBOOK) == []


@pytest.mark.parametrize(("place", "key"), KEYS, ids=[f"{place}-{key}" for place, key in KEYS])
def test_a_misspelled_key_is_one_mistake(place: int, key: str) -> None:
    misspelled = key + "x" if len(key) < 4 else key[0] + key[2] + key[1] + key[3:]
    misspelled = key + "x" if misspelled == key else misspelled
    found = report(PLAYBOOK[:place] + misspelled + PLAYBOOK[place + len(key) :])
    assert found
    assert [one for one in found if one.code.startswith(("NOE2", "NOE3", "NOE4"))] == []
