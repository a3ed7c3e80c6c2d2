"""The checker sees every rendered field and denies an escape in each.

The playbook below has a template in every rendered field of the grammar; `test_no_rendered_field_is_missing` fails when
the grammar gets one that is not here.
"""

from __future__ import annotations

import pytest

from noetl.dsl.analysis.templates import scalars, sites
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.grammar import LEVELS
from noetl.dsl.reading.parse import parse
from noetl.expr import TemplateError
from noetl.wiring.embedded import language_kinds
from tests.unit.expr.plain import is_plain
from tests.unit.expr.safety.escapes import ESCAPES

KINDS = language_kinds()
OF_TRIGGERS = (
    "trigger_webhook",
    "trigger_ended",
    "trigger_subscription",
    "subscription_spec",
    "subscription_dispatch",
)  # with names and rules of their own
MARK = "{{ MARK }}"
EVERYWHERE = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: every, path: tests/every }
keychain:
  - { name: key, kind: bearer, credential: "{{ MARK }}", endpoint: "{{ MARK }}", token_url: "{{ MARK }}" }
executor:
  spec: { pool: "{{ MARK }}", priority: "{{ MARK }}", concurrency: { key: "{{ MARK }}" } }
workload: { plain: "{{ MARK }}", deep: [{ deeper: "{{ MARK }}" }] }
workbook:
  lib: { kind: noop, message: "{{ MARK }}", input: { x: "{{ MARK }}" } }
workflow:
  - step: one
    spec:
      pool: "{{ MARK }}"
      priority: "{{ MARK }}"
      timeout_s: "{{ MARK }}"
      policy:
        lifecycle: { timeout_s: "{{ MARK }}", deadline_s: "{{ MARK }}" }
        admit:
          rules:
            - when: "{{ MARK }}"
              then: { allow: true }
    loop:
      in: "{{ MARK }}"
      iterator: each
      max_in_flight: "{{ MARK }}"
      item_timeout_ms: "{{ MARK }}"
      total_timeout_ms: "{{ MARK }}"
    input: { x: "{{ MARK }}" }
    tool:
      - call:
          kind: http
          url: "{{ MARK }}"
          headers: { X-One: "{{ MARK }}" }
          input: { x: ["{{ MARK }}"] }
          auth: "{{ MARK }}"
          timeout_ms: "{{ MARK }}"
          set: { ctx.a: "{{ MARK }}" }
          set_ctx: { b: "{{ MARK }}" }
          set_iter: { c: "{{ MARK }}" }
          spec:
            timeout: { connect: "{{ MARK }}", read: "{{ MARK }}", total: "{{ MARK }}" }
            result: { store: { kind: file, bucket: "{{ MARK }}", prefix: "{{ MARK }}" } }
            policy:
              rules:
                - when: "{{ MARK }}"
                  then:
                    do: retry
                    attempts: "{{ MARK }}"
                    delay: "{{ MARK }}"
                    backoff: "{{ MARK }}"
                    max_delay: "{{ MARK }}"
                    jitter: "{{ MARK }}"
                    set: { ctx.d: "{{ MARK }}" }
                    set_ctx: { e: "{{ MARK }}" }
                    set_iter: { f: "{{ MARK }}" }
                - else:
                    then: { do: continue, set: { iter.g: "{{ MARK }}" } }
      - slow: { kind: noop, message: "{{ MARK }}", timeout: "{{ MARK }}" }
      - slower: { kind: noop, timeout_seconds: "{{ MARK }}" }
    set: { ctx.h: "{{ MARK }}" }
    set_ctx: { i: "{{ MARK }}" }
    next:
      arcs:
        - step: two
          when: "{{ MARK }}"
          args: { x: "{{ MARK }}" }
          set: { ctx.j: "{{ MARK }}" }
          set_ctx: { k: "{{ MARK }}" }
  - step: two
    loop:
      cursor: { kind: postgres, auth: "{{ MARK }}", claim: "SELECT {{ MARK }}", key: id }
      iterator: row
      spec:
        max_in_flight: "{{ MARK }}"
        pool: "{{ MARK }}"
        frame: { max_rows: "{{ MARK }}", max_seconds: "{{ MARK }}", max_bytes: "{{ MARK }}", row_concurrency: "{{ MARK }}" }
    tool: { kind: shell, command: "echo {{ MARK }}", env: { A: "{{ MARK }}" } }
"""


def subject(text: str) -> CheckContext:
    return CheckContext(parse(text), KINDS)


def marked(text: str, mark: str) -> set[int]:
    return {node.start for node in scalars(parse(text).root) if isinstance(node.value, str) and mark in node.value}


def test_every_template_of_the_document_is_a_site() -> None:
    found = {site.node.start for site in subject(EVERYWHERE).sites}
    assert found == marked(EVERYWHERE, MARK)


def test_no_rendered_field_is_missing_here() -> None:
    written = {name for name, count in _keys(EVERYWHERE).items() if count}
    missing = {
        f"{level.name}.{field.name}"
        for level in LEVELS.values()
        for field in level.fields
        if field.rendered and field.name not in written and level.name not in OF_TRIGGERS
    }
    assert missing == set()


def _keys(text: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for line in text.replace("{", "\n").replace(",", "\n").splitlines():
        key = line.strip().removeprefix("- ").partition(":")[0]
        counts[key] = counts.get(key, 0) + 1
    return counts


@pytest.mark.parametrize("payload", ESCAPES)
def test_an_escape_is_denied_in_every_field(payload: str) -> None:
    document = parse(EVERYWHERE)
    replaced = _with_payload(EVERYWHERE, payload)
    found = subject(replaced)
    assert len(found.sites) == len(sites(subject(EVERYWHERE).playbook, KINDS)), document.problems
    for site in found.sites:
        if site.template is None:
            continue
        try:
            value = site.template.evaluate({"workload": {"x": "text"}, "ctx": {}, "x": [1, {"a": 2}]})
        except TemplateError:
            continue
        assert is_plain(value), (site.role, value)


def _with_payload(text: str, payload: str) -> str:
    quoted = payload.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text.replace(MARK, quoted)


def test_a_python_body_is_not_a_template() -> None:
    text = EVERYWHERE.replace(
        'tool: { kind: shell, command: "echo {{ MARK }}", env: { A: "{{ MARK }}" } }',
        "tool: { kind: python, code: \"result = '{{ MARK }}'\" }",
    )
    bodies = {node.start for node in scalars(parse(text).root) if "result =" in node.text}
    assert not bodies & {site.node.start for site in subject(text).sites}
