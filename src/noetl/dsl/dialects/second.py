"""The second dialect: `case`, `vars`, `sink`, `retry`, `loop.collection`."""

from __future__ import annotations

from functools import partial

from noetl.dsl.dialects.form import LegacyForm

_RULES = "`spec.policy.rules` on the task: `- when: …` / `then: {do: retry, attempts: …, delay: …}`"
_SINK = "a separate task at the end of the pipeline, e.g. `- save: {kind: postgres, table: …, mode: upsert}`"
_SET = "`set: {ctx.<name>: …}` on the step; templates read it as `ctx.<name>`"

_RESULT = f"{_SET}; for a write, {_SINK}"
_form = partial(LegacyForm, "v2")

SECOND_FORMS: tuple[LegacyForm, ...] = (
    _form(
        "step",
        "case",
        "routed and acted on events",
        "`next: {arcs: [{step: …, when: …}]}` for routing and `spec.policy.rules` on the task for control",
        replaces="next",
        routes=True,
    ),
    _form("step", "vars", "kept values for later steps", _SET),
    _form("task", "vars", "kept values for later steps", _SET),
    _form("step", "sink", "wrote the result", _SINK),
    _form("step", "save", "wrote the result", _SINK),
    _form("task", "sink", "wrote the result", _SINK),
    _form("task", "save", "wrote the result", _SINK),
    _form("step", "retry", "repeated the call", _RULES),
    _form("task", "retry", "repeated the call", _RULES),
    _form(
        "step",
        "when",
        "decided whether the step ran",
        "an admission gate: `spec: {policy: {admit: {rules: [{when: …, then: {allow: true}}]}}}`",
        routes=True,
    ),
    _form("step", "result", "named, collected and wrote the result", _RESULT),
    _form("task", "result", "named, collected and wrote the result", _RESULT, shape="map"),
    _form("loop", "collection", "gave the list to go over", "`in: …`", replaces="in"),
    _form("loop", "items", "gave the list to go over", "`in: …`", replaces="in"),
    _form("loop", "element", "named the loop variable", "`iterator: …`"),
    _form(
        "loop", "max_concurrency", "limited the number of concurrent items", "`spec: {max_in_flight: …}` in the loop"
    ),
    _form(
        "arc",
        "then",
        "chose the steps that follow",
        "one arc for each step: `- step: …` with the `when` beside it",
        replaces="step",
        routes=True,
    ),
    _form(
        "arc",
        "else",
        "was the route when nothing matched",
        "an arc without `when`, as the last one",
        replaces="step",
        routes=True,
    ),
    _form("task", "eval", "chose what to do after an outcome", _RULES),
    _form("task", "expr", "was the condition of a rule", _RULES, unless=("eval",)),
    _form("task_rule", "expr", "was the condition of a rule", '`when: "{{ … }}"`', replaces="when"),
)
