"""Every template is found once, with its role and its part of the playbook."""

from __future__ import annotations

from textwrap import dedent

import pytest

from noetl.dsl.analysis.templates import TemplateSite, scalars, sites
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.wiring.embedded import language_kinds

KINDS = language_kinds()
EVERYWHERE = """\
workload: { a: "{{ a01 }}", deep: { list: [1, "{{ a02 }}"] }, plain: text, brace: "a { b" }
keychain: [{ name: key, kind: token, url: "{{ a03 }}" }]
executor: { spec: { pool: "{{ a04 }}", workload_schema: { description: "{{ no }}" } } }
metadata: { name: "{{ no }}", path: tests/sites, description: "{{ no }}" }
workbook:
  shared: { kind: http, url: "{{ a05 }}" }
workflow:
  - step: one
    desc: "{{ no }}"
    spec:
      timeout_s: "{{ a07 }}"
      policy:
        admit: { rules: [{ when: "{{ a06 }}", then: { allow: true } }] }
        lifecycle: { deadline_s: "{{ a08 }}" }
    loop:
      in: "{{ a09 }}"
      iterator: row
      spec: { mode: parallel, max_in_flight: "{{ a10 }}" }
      item_timeout_ms: "{{ a11 }}"
    input: { x: "{{ a12 }}" }
    tool:
      - get:
          kind: http
          url: "{{ a13 }}"
          headers: { X: "{{ a14 }}" }
          spec:
            timeout: { read: "{{ a18 }}" }
            policy:
              rules:
                - when: "{{ a20 }}"
                  then: { do: retry, attempts: 2, delay: "{{ a21 }}", set: { iter.y: "{{ a22 }}" } }
                - else: { then: { do: continue, set_ctx: { z: "{{ a23 }}" } } }
          args: { x: "{{ a15 }}" }
          auth: "{{ a16 }}"
          timeout: "{{ a17 }}"
          set: { ctx.x: "{{ a19 }}" }
    set: { ctx.x: "{{ a24 }}" }
    next:
      arcs:
        - { step: two, when: "{{ a25 }}", args: { x: "{{ a26 }}" }, set: { ctx.y: ["{{ a27 }}"] } }
  - step: two
    loop: { cursor: { kind: postgres, claim: "{{ a28 }}", key: id } }
    tool: { kind: python, code: "result = '{{ no }}'", args: { y: "{{ a29 }}" } }
"""
ROLES = {
    "a01": "workload", "a02": "workload", "a03": "keychain", "a04": "executor", "a05": "task_input", "a06": "admit",
    "a07": "step_spec", "a08": "step_spec", "a09": "loop", "a10": "loop", "a11": "loop", "a12": "step_input",
    "a13": "task_input", "a14": "task_input", "a15": "task_input", "a16": "task_input", "a17": "task_input",
    "a18": "task_input", "a19": "task_set", "a20": "task_rule", "a21": "task_then", "a22": "task_then",
    "a23": "task_then", "a24": "step_set", "a25": "arc_when", "a26": "arc_args", "a27": "arc_set", "a28": "cursor",
    "a29": "task_input",
}  # fmt: skip


def found(text: str) -> dict[str, TemplateSite]:
    """Return the sites by template."""
    listed = sites(normalize(parse(text, "test.yaml")), KINDS)
    named = {site.node.value.strip("{} "): site for site in listed}
    assert len(named) == len(listed), "a template was found twice"
    return named


def test_every_template_is_found_once_with_its_role() -> None:
    assert {name: site.role for name, site in found(EVERYWHERE).items()} == ROLES


def test_a_site_knows_its_part_of_the_playbook() -> None:
    named = found(EVERYWHERE)
    assert named["a05"].in_workbook
    assert named["a05"].task is not None
    assert named["a05"].step is None
    for name in ("a06", "a12", "a20", "a25"):
        step = named[name].step
        assert step is not None
        assert step.name == "one"
    assert named["a13"].task is named["a20"].task is not None
    assert named["a20"].rule is named["a22"].rule is not None
    assert named["a25"].arc is named["a27"].arc is not None
    assert named["a24"].arc is None


def test_a_site_names_its_field_or_target() -> None:
    named = found(EVERYWHERE)
    fields = {"a01": "a", "a02": "deep", "a09": "in", "a13": "url", "a14": "headers", "a16": "auth", "a21": "delay"}
    targets = {"a19": "ctx.x", "a22": "iter.y", "a23": "ctx.z", "a24": "ctx.x", "a27": "ctx.y"}
    assert {name: named[name].field for name in fields} == fields
    assert {name: named[name].field for name in targets} == targets


def test_conditions_are_told_from_values() -> None:
    assert {name for name, site in found(EVERYWHERE).items() if site.is_condition} == {"a06", "a20", "a25"}


def test_a_template_that_does_not_parse_is_a_site_with_its_error() -> None:
    (site,) = sites(normalize(parse("workload: { a: '{{ b | }}' }", "test.yaml")), KINDS)
    assert site.template is None
    assert site.error is not None
    assert site.error.offset == 7


@pytest.mark.parametrize(("kind", "field"), [("python", "code"), ("python", "cdoe"), ("pyhton", "code")])
def test_code_is_never_a_template(kind: str, field: str) -> None:
    text = f"workflow: [{{ step: a, tool: {{ kind: {kind}, {field}: '{{{{ x }}}}', zzz: '{{{{ y }}}}' }} }}]"
    assert set(found(text)) == {"y"}


def test_parts_of_an_input_that_are_not_rendered_are_left_out() -> None:
    text = """\
    workflow:
      - step: a
        tool:
          kind: postgres
          script: { uri: "{{ shown }}", content: "{{ hidden }}", source: { type: inline, auth: "{{ too }}" } }
    """
    assert set(found(dedent(text))) == {"shown", "too"}


def test_scalars_come_in_order() -> None:
    root = parse("a: [1, { b: two, c: [] }]\nd: null\n", "test.yaml").root
    assert [node.text for node in scalars(root)] == ["1", "two", "null"]
