"""The first dialect: `steps` in order, tasks by `type`, conditions by `pass`."""

from __future__ import annotations

from functools import partial

from noetl.dsl.dialects.form import LegacyForm

_TOOL = "`tool: {kind: …}`, with the tool's own fields inside"
_LOOP = "`loop: {in: …, iterator: …}` on the step, with what ran per item under `tool`"
_GATE = "an admission gate, `spec.policy.admit.rules`, or a `when` on the arc that leads to the step"

_form = partial(LegacyForm, "v1")

FIRST_FORMS: tuple[LegacyForm, ...] = (
    _form(
        "playbook",
        "steps",
        "ran the steps in file order",
        "a `workflow` list: `- step: a` … `next: b`",
        replaces="workflow",
        routes=True,
        below="step",
    ),
    _form(
        "step",
        "type",
        "repeated a task for every element of a collection",
        _LOOP,
        replaces="tool",
        routes=True,
        absorbs=True,
        values=("iterator",),
    ),
    _form("step", "type", "chose the tool of a step", _TOOL, replaces="tool", routes=True, absorbs=True),
    _form("task", "type", "chose the tool of a task", "`kind: …`", replaces="kind"),
    _form("step", "pass", "skipped the step", _GATE, routes=True),
    _form(
        "step",
        "action",
        "named the work of a step",
        _TOOL,
        replaces="tool",
        routes=True,
        absorbs=True,
        unless=("type",),
    ),
    _form(
        "task",
        "action",
        "named the work of a task",
        "`kind: …` and the fields of that kind",
        replaces="kind",
        unless=("kind",),
    ),
    _form(
        "step",
        "call",
        "called a task of the workbook",
        "`tool: {kind: workbook, task: …}`",
        replaces="tool",
        routes=True,
        unless=("type",),
    ),
    _form("step", "name", "named the step", "`step: <name>`", replaces="step", unless=("step",)),
    _form("step", "collection", "gave the list to go over", "`loop: {in: …}`", unless=("type",)),
    _form("step", "element", "named the loop variable", "`loop: {iterator: …}`", unless=("type",)),
    _form("step", "iterator", "named the loop variable", "`loop: {iterator: …}`", unless=("type", "loop")),
    _form("step", "with", "gave the inputs of the step", "`input: {…}`", unless=("type", "input", "args")),
    _form("task", "with", "gave the inputs of the task", "`input: {…}`", unless=("input", "args")),
    _form("arc", "with", "gave the inputs of the next step", "`args: {…}`", unless=("input", "args")),
    _form("arc", "data", "gave the inputs of the next step", "`args: {…}`", unless=("input", "args", "with")),
    _form(
        "step",
        "code",
        "held the code of a python step",
        "`tool: {kind: python, code: …}`",
        replaces="tool",
        unless=("type", "tool", "kind"),
    ),
    _form(
        "step",
        "command",
        "held the command of a step",
        "`tool: {kind: …, command: …}`",
        replaces="tool",
        unless=("type", "tool", "kind"),
    ),
)
