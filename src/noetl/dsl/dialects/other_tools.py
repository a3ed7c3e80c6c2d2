"""Keys of other workflow tools, and what replaces each of them here.

Only keys that the language does not have at that level. Tested in tests/unit/dsl/test_dialects.py.
"""

from __future__ import annotations

from msgspec import Struct

from noetl.dsl.reading.nodes import Node, Scalar

_ORDER = "Write the order as arcs: `next: <this step>` on the step before it. A step where branches meet waits for all."
_CONDITION = 'Put the condition on the arc that leads to the step: `next: {arcs: [{step: …, when: "{{ … }}"}]}`.'
_START = (
    'Write `triggers: [{schedule: nightly, cron: "30 2 * * *"}]` at the root of the playbook, and register it on a '
    "server; or make a schedule with `noetl schedule create`. For other events, call `POST /api/execute`; the "
    "`Idempotency-Key` header starts each occurrence once."
)
_WORKFLOW = "Write a `workflow` list: `- step: a` with its `tool` and `next: b`."
_WORKLOAD = "Write the inputs with their defaults under `workload`; templates read `{{ workload.<name> }}`."
_STEP_INPUT = "Write `input: {…}`; templates read `{{ input.<name> }}`."
_RETRY = (
    "Write `spec: {retries: {plugin: {max_attempts: …}}}` for errors that are worth a retry, or a rule in the task's "
    "`spec.policy.rules`: `then: {do: retry, attempts: …, delay: …}`."
)
_FAILURE = "Add an arc with `when: \"{{ event.name == 'step.failed' }}\"` to the step's `next`."
_GO_ON = (
    "To go on after an error, add a rule to the task's `spec.policy.rules`: `then: {do: continue}`, or write "
    "`spec: {on_step_fail: continue}` on the step."
)
_ENVIRONMENT = "Variables of a process belong to its task: `tool: {kind: shell, command: …, env: {…}}`."
_SHELL = "Write `tool: {kind: shell, command: …}`."
_LOOP = 'Write `loop: {in: "{{ … }}", iterator: item}` on the step; `spec: {mode: parallel}` in it runs items at once.'
_TIMEOUT = "Write `spec: {timeout_s: …}`, in seconds."


class ForeignKey(Struct, frozen=True):
    """A key of another tool at one level of the language."""

    level: str
    key: str
    instead: str  # what to write here
    replaces: str = ""  # the field that is not missing where this key stands in for it
    routes: bool = False  # it orders steps, so the net is incomplete without it


def _keys(level: str, names: str, instead: str, replaces: str = "", routes: bool = False) -> tuple[ForeignKey, ...]:
    return tuple(ForeignKey(level, name, instead, replaces, routes) for name in names.split())


_ROOT: tuple[ForeignKey, ...] = (
    *_keys("playbook", "on trigger schedule schedules schedule_interval start_date catchup cron crons", _START),
    *_keys("playbook", "jobs tasks dag templates stages pipeline", _WORKFLOW, "workflow", routes=True),
    *_keys("playbook", "entrypoint", "Write `executor: {spec: {entry_step: …}}`."),
    *_keys("playbook", "inputs params parameters arguments variables vars", _WORKLOAD),
    *_keys("playbook", "env", f"{_WORKLOAD} {_ENVIRONMENT}"),
    *_keys("playbook", "secrets", "Declare credentials under `keychain`; tasks name them with `auth`."),
    *_keys(
        "playbook",
        "outputs",
        "The result of the last step, or of `executor.spec.final_step`, is the result of the execution.",
    ),
    *_keys("playbook", "id", "Write `metadata: {name: …, path: …}`."),
    *_keys("playbook", "namespace", "Write it in front of `metadata.path`: `path: namespace/name`."),
    *_keys(
        "playbook",
        "concurrency",
        "Write `executor: {spec: {max_parallel: …}}` to bound the step-runs of one execution.",
    ),
    *_keys("playbook", "runs-on", "Write `executor: {spec: {pool: …}}` to choose the workers."),
    *_keys("playbook", "default_args defaults", "Write defaults of all steps under `executor.spec`."),
    *_keys(
        "playbook",
        "onExit errors finally",
        "Write a step that runs at the end, after success and after a halt: `executor: {spec: {final_step: …}}`.",
    ),
)
_STEP: tuple[ForeignKey, ...] = (
    *_keys("step", "needs depends_on dependsOn depends dependencies upstream wait_for", _ORDER, routes=True),
    *_keys("step", "if runIf condition", _CONDITION, routes=True),
    *_keys("step", "run", _SHELL, "tool"),
    *_keys(
        "step",
        "uses",
        "Choose a kind: `tool: {kind: http, url: …}`. Another playbook is `tool: {kind: playbook, path: …}`.",
        "tool",
    ),
    *_keys("step", "env", _ENVIRONMENT),
    *_keys("step", "inputs params parameters arguments", _STEP_INPUT),
    *_keys(
        "step",
        "outputs",
        "Later steps read the result by the step's name: `{{ <step>.<field> }}`. "
        "`set: {ctx.<name>: …}` keeps a value under a name of its own.",
    ),
    *_keys("step", "id", "Write `step: <name>`."),
    *_keys("step", "retries retry_delay retryStrategy max_retries", _RETRY),
    *_keys("step", "timeout-minutes execution_timeout", _TIMEOUT),
    *_keys("step", "continue-on-error continueOn allowFailure", _GO_ON),
    *_keys("step", "on_failure on_error errors on_failure_callback", _FAILURE, routes=True),
    *_keys(
        "step",
        "trigger_rule",
        "Write `spec: {join: all|any|each}`; a failure is routed by an arc of the failed "
        "step: `when: \"{{ event.name == 'step.failed' }}\"`.",
        routes=True,
    ),
    *_keys("step", "strategy matrix with_items withItems withParam foreach for_each", _LOOP),
    *_keys("step", "runs-on", "Write `spec: {pool: …}` or `spec: {requires: {tags: […]}}`."),
    *_keys("step", "schedule cron", _START),
)
_TASK: tuple[ForeignKey, ...] = (
    *_keys("task", "needs depends_on dependsOn", f"Tasks of a pipeline run in file order. For steps: {_ORDER}"),
    *_keys("task", "if condition runIf", _CONDITION),
    *_keys("task", "run", "Write `kind: shell` and `command: …`.", "command"),
    *_keys("task", "uses", "Choose a kind: `kind: http`, `kind: python`, ….", "kind"),
    *_keys("task", "env", "Only `kind: shell` has `env`. Put values for templates and code into `input`."),
    *_keys("task", "inputs", "Write `input: {…}`."),
    *_keys("task", "retries retry_delay max_retries retryStrategy", _RETRY),
    *_keys("task", "timeout-minutes", "Write `timeout: …`, in seconds."),
    *_keys("task", "continue-on-error allowFailure", _GO_ON),
    *_keys("task", "schedule cron", _START),
)
_ARC: tuple[ForeignKey, ...] = (
    *_keys("arc", "if condition", 'Write `when: "{{ … }}"`.', "when", routes=True),
    *_keys("arc", "to goto target", "Write `step: <name>`.", "step", routes=True),
    *_keys("arc", "inputs params", "Write `args: {…}`.", "args"),
)
FOREIGN_KEYS: tuple[ForeignKey, ...] = (*_ROOT, *_STEP, *_TASK, *_ARC)
_BY_PLACE = {(key.level, key.key): key for key in FOREIGN_KEYS}
# As a map they are settings of this language that belong under `spec`.
_OURS_AS_A_MAP = frozenset({"retries"})


def foreign_key(level: str, name: str, value: Node) -> ForeignKey | None:
    """Return the key of another tool that this one is, or None."""
    if name in _OURS_AS_A_MAP and not isinstance(value, Scalar):
        return None
    return _BY_PLACE.get((level, name))
