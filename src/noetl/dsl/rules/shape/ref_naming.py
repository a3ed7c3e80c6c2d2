"""NOE111 reports a reference without the suffix `_ref`, and the reverse."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.rules.shape.traversal import writes
from noetl.dsl.tree.playbook import Assign
from noetl.expr import TemplateError, compile_template

GOOD = example("""\
workflow:
  - step: export
    tool: { kind: http, url: https://example.org/orders }
    set: { ctx.orders_ref: "{{ outcome.ref }}" }
    next: report
  - step: report
    tool: { kind: noop, message: "Kept at {{ ctx.orders_ref }}." }
""")
_ENVELOPES = ("outcome", "output")
_WHOLE = (("data",), ("result",))


def check(subject: CheckContext) -> Iterator[Finding]:
    results = (
        subject.names.steps | {task.label for step in subject.playbook.workflow for task in step.tasks} | {"_prev"}
    )
    for _, _, assigns in writes(subject):
        for assign in assigns:
            finding = _check_name(assign, results)
            if finding:
                yield finding


def _check_name(assign: Assign, results: frozenset[str]) -> Finding | None:
    node = assign.at
    name = assign.key.rsplit(".", 1)[-1]
    if node is None or name.startswith("_"):
        return None
    path = _path(assign.value.data)
    if name.endswith("_ref"):
        what = _not_a_reference(assign.value.data, path, results)
        if what:
            message = f"'{assign.target}' is named like a reference, but its value is {what}."
            fix = f"Write the reference (`{{{{ outcome.ref }}}}`), or rename it to '{assign.target.removesuffix('_ref')}'."
            return at(node, message, fix)
    elif path and _is_reference(path, results):
        message = f"'{assign.target}' holds a reference, but its name does not end in `_ref`."
        return at(node, message, f"Rename it to '{assign.target}_ref', here and where it is read.")
    return None


def _path(data: object) -> tuple[str, ...]:
    """Return the path of a template that only reads one path, else an empty tuple."""
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
    """Describe a value that is certainly not a reference; empty where it may be one."""
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
    severity="warning",
    summary="A name ends in `_ref` but holds no reference, or a reference has a name without `_ref`.",
    why="A reference is the address of a stored result, not the result. The suffix tells readers and tools which of the two "
    "a name holds: a step that expects rows and gets an address fails far from the mistake.",
    fix="Use names that end in `_ref` for references (`{{ outcome.ref }}`, `{{ step._ref }}`), and for nothing else.",
    bad=GOOD.replace("{{ outcome.ref }}", "{{ outcome.result }}"),
    good=GOOD,
    check=check,
)
