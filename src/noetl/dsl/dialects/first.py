"""The first dialect: `steps` in order, tasks by `type`, conditions by `pass`."""

from __future__ import annotations

from noetl.dsl.dialects.form import LegacyForm

_LOOP = "`loop: {in: …, iterator: …}` on the step, with what ran per item under `tool`"
_GATE = "an admission gate, `spec.policy.admit.rules`, or a `when` on the arc that leads to the step"

FIRST_FORMS: tuple[LegacyForm, ...] = (
    LegacyForm(
        "v1",
        "playbook",
        "steps",
        "ran the steps in file order",
        "a `workflow` list whose steps name the next step: `- step: a` … `next: b`",
        replaces="workflow",
        routes=True,
        below="step",
    ),
    LegacyForm(
        "v1",
        "step",
        "type",
        "repeated a task for every element of a collection",
        _LOOP,
        replaces="tool",
        routes=True,
        absorbs=True,
        values=("iterator",),
    ),
    LegacyForm(
        "v1",
        "step",
        "type",
        "chose the tool of a step",
        "`tool: {kind: …}`, with the tool's own fields inside",
        replaces="tool",
        routes=True,
        absorbs=True,
    ),
    LegacyForm("v1", "task", "type", "chose the tool of a task", "`kind: …`", replaces="kind"),
    LegacyForm("v1", "step", "pass", "skipped the step", _GATE, routes=True),
    LegacyForm(
        "v1",
        "step",
        "action",
        "named the work of a step",
        "`tool: {kind: …}`, with the action's own fields inside",
        replaces="tool",
        routes=True,
        absorbs=True,
        unless=("type",),
    ),
    LegacyForm(
        "v1",
        "task",
        "action",
        "named the work of a task",
        "`kind: …` and the fields of that kind",
        replaces="kind",
        unless=("kind",),
    ),
    LegacyForm(
        "v1",
        "step",
        "call",
        "called a task of the workbook",
        "`tool: {kind: workbook, task: …}`",
        replaces="tool",
        routes=True,
        unless=("type",),
    ),
    LegacyForm("v1", "step", "name", "named the step", "`step: <name>`", replaces="step", unless=("step",)),
    LegacyForm("v1", "step", "collection", "gave the list to go over", "`loop: {in: …}`", unless=("type",)),
    LegacyForm("v1", "step", "element", "named the loop variable", "`loop: {iterator: …}`", unless=("type",)),
    LegacyForm("v1", "step", "iterator", "named the loop variable", "`loop: {iterator: …}`", unless=("type", "loop")),
    LegacyForm("v1", "step", "with", "gave the inputs of the step", "`input: {…}`", unless=("type", "input", "args")),
    LegacyForm("v1", "task", "with", "gave the inputs of the task", "`input: {…}`", unless=("input", "args")),
    LegacyForm("v1", "arc", "with", "gave the inputs of the next step", "`args: {…}`", unless=("input", "args")),
    LegacyForm(
        "v1",
        "step",
        "code",
        "held the code of a python step",
        "`tool: {kind: python, code: …}`",
        replaces="tool",
        unless=("type", "tool", "kind"),
    ),
    LegacyForm(
        "v1",
        "step",
        "command",
        "held the command of a step",
        "`tool: {kind: …, command: …}`",
        replaces="tool",
        unless=("type", "tool", "kind"),
    ),
)
