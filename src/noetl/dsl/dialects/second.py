"""The second dialect: `case`, `vars`, `sink`, `retry`, `loop.collection`."""

from __future__ import annotations

from noetl.dsl.dialects.form import LegacyForm

_RULES = "`spec.policy.rules` on the task: `- when: …` / `then: {do: retry, attempts: …, delay: …}`"
_SINK = "a separate task at the end of the pipeline, e.g. `- save: {kind: postgres, table: …, mode: upsert}`"
_SET = "`set: {ctx.<name>: …}` on the step; templates read it as `ctx.<name>`"

SECOND_FORMS: tuple[LegacyForm, ...] = (
    LegacyForm(
        "v2",
        "step",
        "case",
        "routed and acted on events",
        "`next: {arcs: [{step: …, when: …}]}` for routing and `spec.policy.rules` on the task for control",
        replaces="next",
        routes=True,
    ),
    LegacyForm("v2", "step", "vars", "kept values for later steps", _SET),
    LegacyForm("v2", "task", "vars", "kept values for later steps", _SET),
    LegacyForm("v2", "step", "sink", "wrote the result", _SINK),
    LegacyForm("v2", "step", "save", "wrote the result", _SINK),
    LegacyForm("v2", "task", "sink", "wrote the result", _SINK),
    LegacyForm("v2", "task", "save", "wrote the result", _SINK),
    LegacyForm("v2", "step", "retry", "repeated the call", _RULES),
    LegacyForm("v2", "task", "retry", "repeated the call", _RULES),
    LegacyForm(
        "v2",
        "step",
        "when",
        "decided whether the step ran",
        "an admission gate: `spec: {policy: {admit: {rules: [{when: …, then: {allow: true}}]}}}`",
        routes=True,
    ),
    LegacyForm("v2", "step", "result", "named, collected and wrote the result", f"{_SET}; for a write, {_SINK}"),
    LegacyForm(
        "v2",
        "task",
        "result",
        "named, collected and wrote the result",
        f"{_SET}; for a write, {_SINK}",
        shape="map",
    ),
    LegacyForm("v2", "loop", "collection", "gave the list to go over", "`in: …`", replaces="in"),
    LegacyForm("v2", "loop", "items", "gave the list to go over", "`in: …`", replaces="in"),
    LegacyForm("v2", "loop", "element", "named the loop variable", "`iterator: …`"),
    LegacyForm(
        "v2",
        "loop",
        "max_concurrency",
        "limited the number of concurrent items",
        "`spec: {max_in_flight: …}` in the loop",
    ),
    LegacyForm(
        "v2",
        "arc",
        "then",
        "chose the steps that follow",
        "one arc for each step: `- step: …` with the `when` beside it",
        replaces="step",
        routes=True,
    ),
    LegacyForm(
        "v2",
        "arc",
        "else",
        "was the route when nothing matched",
        "an arc without `when`, as the last one",
        replaces="step",
        routes=True,
    ),
    LegacyForm("v2", "task", "eval", "chose what to do after an outcome", _RULES),
    LegacyForm("v2", "task", "expr", "was the condition of a rule", _RULES, unless=("eval",)),
    LegacyForm("v2", "task_rule", "expr", "was the condition of a rule", '`when: "{{ … }}"`', replaces="when"),
)
