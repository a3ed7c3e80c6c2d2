"""Which names exist where, what a playbook adds, and what each read means."""

from __future__ import annotations

from textwrap import dedent

import pytest

from noetl.dsl.analysis.references import Reference
from noetl.dsl.analysis.scopes import BY_ROLE, IN_PIPELINE, ON_SERVER, SCOPES, WHERE, Names, visible
from noetl.dsl.analysis.templates import Role
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.reading.parse import parse
from noetl.wiring.embedded import language_kinds

KINDS = language_kinds()
PLAYBOOK = """\
executor: { spec: { final_step: last, workload_schema: { properties: { day: {} } } } }
workload: { api: x, first: workload }
workbook:
  - shared: { kind: noop, args: { own: 1 }, message: "{{ a00 }}" }
workflow:
  - step: first
    tool:
      - fetch: { kind: noop, set: { step.scratch: 1, ctx.deep.down: 1 } }
      - call: { kind: workbook, task: shared, args: { given: "{{ a01 }}" } }
    set: { ctx.total: 1, bare: 2 }
    next: { arcs: [{ step: each, when: "{{ a02 }}", args: { bound: 1 }, set: { ctx.arc: 1 } }] }
  - step: each
    loop: { in: "{{ a03 }}", iterator: row }
    input: { outer: "{{ a04 }}" }
    tool:
      - one: { kind: noop, args: { inner: 1 }, message: "{{ a05 }}", set: { iter.made: 1 } }
      - two: { kind: noop, message: "{{ a06 }}" }
    set: { ctx.done: "{{ a07 }}" }
    compensate: undo
  - step: undo
    tool: { kind: noop }
  - step: last
    tool: { kind: noop, message: "{{ a08 }}" }
"""


def subject(text: str = PLAYBOOK) -> CheckContext:
    return CheckContext(parse(dedent(text), "test.yaml"), KINDS)


def names_at(template: str) -> frozenset[str]:
    """Return the names that are visible in the template of this text."""
    whole = subject()
    (site,) = [site for site in whole.sites if template in site.node.value]
    return visible(site, whole.names)


def test_every_scope_that_is_not_everywhere_says_where_it_is() -> None:
    everywhere = frozenset.intersection(*BY_ROLE.values())
    assert set(WHERE) == set(SCOPES) - everywhere
    assert frozenset.union(*BY_ROLE.values()) == set(SCOPES)


@pytest.mark.parametrize("role", sorted(ON_SERVER))
def test_credentials_never_reach_the_server(role: Role) -> None:
    assert "keychain" not in BY_ROLE[role]


@pytest.mark.parametrize("role", sorted(BY_ROLE))
def test_the_pipeline_has_names_of_its_own(role: Role) -> None:
    assert ("_prev" in BY_ROLE[role]) == (role in IN_PIPELINE)


def test_names_that_a_playbook_brings() -> None:
    names = Names.of(subject().playbook)
    assert names.workload == {"api", "first", "day"}
    assert names.steps == {"first", "each", "undo", "last"}
    assert names.ctx == {"deep", "total", "bare", "arc", "done"}
    assert names.args == {"each": {"bound"}, "last": {"counts", "failures", "results"}}
    assert names.labels["each"] == {"one": 0, "two": 1}
    assert names.iter["each"] == {"made"}
    assert names.scratch["first"] == {"scratch"}
    assert names.workbook == {"shared": {"given"}}
    assert names.compensations == {"undo"}
    assert not names.open_workload
    assert Names.of(subject("workflow: [{ step: a, tool: { kind: noop } }]").playbook).open_workload


def test_names_in_a_task_of_a_loop() -> None:
    seen = names_at("a05")
    assert {"row", "index", "loop_index", "made", "one", "two", "bound", "outer", "inner", "iter", "_prev"} <= seen
    assert {"api", "day", "total", "first", "each", "keychain", "signals"} <= seen
    assert {"outcome", "event", "fetch", "given"}.isdisjoint(seen)


def test_inputs_of_a_task_are_not_those_of_the_next() -> None:
    assert "inner" not in names_at("a06")


def test_the_item_exists_inside_the_loop_only() -> None:
    for template in ("a03", "a07"):
        assert {"row", "iter", "index", "loop_index"}.isdisjoint(names_at(template)), template
    assert "row" in names_at("a04")


def test_names_on_an_arc() -> None:
    seen = names_at("a02")
    assert {"event", "outcome", "output", "step", "first", "total"} <= seen
    assert {"_prev", "keychain", "fetch", "bound"}.isdisjoint(seen)


def test_a_task_of_the_workbook_sees_its_inputs_and_not_its_caller() -> None:
    seen = names_at("a00")
    assert {"own", "given", "input", "workload", "ctx", "keychain", "api", "total"} <= seen
    assert {"iter", "args", "_prev", "step", "fetch", "each"}.isdisjoint(seen)


def test_the_final_step_has_its_own_arguments() -> None:
    assert {"counts", "failures", "results"} <= names_at("a08")


def reference(expression: str, where: str = "a05") -> Reference:
    whole = subject(PLAYBOOK.replace(f"{{{{ {where} }}}}", f"{{{{ {expression} }}}}"))
    name = expression.partition(".")[0]
    (found,) = [one for one in whole.references if one.name == name]
    return found


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("workload", ("scope",)), ("outcome", ("misplaced",)), ("bound", ("input",)), ("bare", ("ctx",)),
        ("total", ("ctx", "iter")), ("signals", ("ctx",)), ("row", ("iter",)), ("_index", ("iter",)),
        ("one", ("label",)), ("each", ("step",)), ("first", ("iter", "step", "workload")), ("api", ("workload",)),
        ("day", ("workload",)), ("nothing", ()),
    ],
)  # fmt: skip
def test_what_a_name_stands_for_in_a_task(name: str, means: tuple[str, ...]) -> None:
    assert reference(name).means == means


def test_the_iteration_around_is_known_everywhere() -> None:
    assert reference("iter.parent.index", "a02").means == ("scope",)
    assert reference("iter.index", "a02").means == ("misplaced",)


def test_a_reference_knows_its_key() -> None:
    assert reference("workload.api").key == "api"
    assert reference("row").key is None
    assert reference("row.x").key == "x"


def test_visible_names_and_meanings_agree() -> None:
    whole = subject()
    for site in whole.sites:
        template = site.node.value.strip("{} ")
        for name in sorted(visible(site, whole.names)):
            means = reference(name, template).means
            assert means, f"{name} at {template}"
            assert means != ("misplaced",), f"{name} at {template}"
