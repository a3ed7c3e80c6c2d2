"""The first dialect: `steps` in order, tasks by `type`, conditions by `pass`."""

from __future__ import annotations

from noetl.dsl.dialects.form import LegacyForm

FIRST_FORMS: tuple[LegacyForm, ...] = (
    LegacyForm(
        "v1",
        "playbook",
        "steps",
        "ran the steps in file order",
        "a `workflow` list whose steps name their followers: `- step: a` … `next: b`",
        routes=True,
    ),
    LegacyForm("v1", "step", "type", "chose the tool of a step", "`tool: {kind: …}`", routes=True),
    LegacyForm("v1", "task", "type", "chose the tool of a task", "`kind: …`"),
    LegacyForm("v1", "workbook_task", "type", "chose the tool of a task", "`kind: …`"),
    LegacyForm(
        "v1",
        "step",
        "pass",
        "skipped the step",
        "an admission gate, `spec.policy.admit.rules`, or a `when` on the arc that leads to the step",
        routes=True,
    ),
    LegacyForm("v1", "step", "action", "named the work of a step", "`tool: {kind: …}` with the action's own fields", routes=True),
    LegacyForm("v1", "task", "action", "named the work of a task", "the fields of the task's `kind`"),
    LegacyForm("v1", "step", "iterator", "named the loop variable", "`loop: {in: …, iterator: …}`"),
    LegacyForm("v1", "step", "name", "named the step", "`step: <name>`"),
    LegacyForm("v1", "step", "collection", "gave the list to go over", "`loop: {in: …, iterator: …}`"),
    LegacyForm("v1", "step", "element", "named the loop variable", "`loop: {in: …, iterator: …}`"),
    LegacyForm("v1", "step", "code", "held the code of a python step", "`tool: {kind: python, code: …}`"),
    LegacyForm("v1", "step", "command", "held the command of a step", "`tool: {kind: …, command: …}`"),
)
