"""NOE111 reports a reference under a name that does not end in `_ref`, and such a name for something else."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.playbook import Assign
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.shape.parts import writes
from noetl.dsl.subject import Subject
from noetl.expr import TemplateError, compile_template

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: export, path: examples/export }
workflow:
  - step: export
    tool: { kind: http, url: https://example.org/orders }
    set: { ctx.orders_ref: "{{ outcome.ref }}" }
    next: report
  - step: report
    tool: { kind: noop, message: "Kept at {{ ctx.orders_ref }}." }
"""
_ENVELOPES = ("outcome", "output")
_WHOLE = (("data",), ("result",))


def check(subject: Subject) -> Iterator[Found]:
    results = (
        subject.names.steps | {task.label for step in subject.playbook.workflow for task in step.tasks} | {"_prev"}
    )
    for _, _, assigns in writes(subject):
        for assign in assigns:
            found = _judge(assign, results)
            if found:
                yield found


def _judge(assign: Assign, results: frozenset[str]) -> Found | None:
    node = assign.at
    name = assign.key.rsplit(".", 1)[-1]
    if node is None or name.startswith("_"):
        return None
    path = _path(assign.value.data)
    if name.endswith("_ref"):
        what = _not_a_reference(assign.value.data, path, results)
        if what:
            message = f"'{assign.target}' is named like a reference, but is given {what}."
            fix = f"Write the reference (`{{{{ outcome.ref }}}}`), or call it '{assign.target.removesuffix('_ref')}'."
            return at(node, message, fix)
    elif path and _is_reference(path, results):
        message = f"'{assign.target}' is given a reference, but its name does not end in `_ref`."
        return at(node, message, f"Call it '{assign.target}_ref', here and where it is read.")
    return None


def _path(data: object) -> tuple[str, ...]:
    """Give the path that a template reads and does nothing else with; empty where it does more."""
    if not isinstance(data, str) or "{{" not in data:
        return ()
    try:
        template = compile_template(data)
    except TemplateError:
        return ()
    if template.kind != "expression" or len(template.reads) != 1:
        return ()
    path = tuple(map(str, template.reads[0].path))
    return path if data.strip().removeprefix("{{").removesuffix("}}").strip() == ".".join(path) else ()


def _not_a_reference(data: object, path: tuple[str, ...], results: frozenset[str]) -> str:
    """Say what a value is that is plainly no reference; empty where it may be one."""
    if isinstance(data, bool | int | float):
        return "a plain value"
    if isinstance(data, list):
        return "a list"
    if isinstance(data, str) and "{{" not in data and "{%" not in data:
        return "" if not data or "://" in data or data.startswith("refs/") else "a plain text"
    whole = (path[:1] in (("outcome",), ("output",)) and path[1:] in ((), *_WHOLE)) or (
        bool(path) and path[0] in results and path[1:] in ((), *_WHOLE)
    )
    return "a whole result" if whole else ""


def _is_reference(path: tuple[str, ...], results: frozenset[str]) -> bool:
    if path[0] in _ENVELOPES:
        return path[1:] in (("ref",), ("_ref",), ("result", "_ref"), ("data", "_ref"))
    return path[0] in results and path[1:] in (("_ref",), ("data", "_ref"))


RULE = Rule(
    code="NOE111",
    name="ref-naming",
    group="shape",
    severity="warning",
    summary="A name that ends in `_ref` holds no reference, or a reference has a name that does not end so.",
    why="A reference is the address of a stored result, not the result. The ending tells readers and tools which of the two "
    "they hold: a step that expects rows and gets an address fails far from the mistake.",
    fix="Write references (`{{ outcome.ref }}`, `{{ step._ref }}`) to names that end in `_ref`, and only references.",
    bad=GOOD.replace("{{ outcome.ref }}", "{{ outcome.result }}"),
    good=GOOD,
    check=check,
)
