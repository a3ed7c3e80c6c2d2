"""Keys of other workflow tools, and what replaces each of them here.

Only keys that the language does not have at that level. Tested in tests/unit/dsl/test_dialects.py.
"""

from __future__ import annotations

from msgspec import Struct

from noetl.dsl.reading.nodes import Node, Scalar

_GITHUB, _AIRFLOW, _ARGO, _PREFECT, _KESTRA = "GitHub Actions", "Airflow", "Argo Workflows", "Prefect", "Kestra"

_ORDER = "Write the order as arcs: `next: <this step>` on the step before it. A step where branches meet waits for all."
_CONDITION = 'Put the condition on the arc that leads to the step: `next: {arcs: [{step: …, when: "{{ … }}"}]}`.'
_START = (
    "A playbook does not start itself. Run `noetl exec PATH` from cron or another scheduler, or call "
    "`POST /api/execute`; the `Idempotency-Key` header starts each occurrence once."
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
    origin: str  # the tools that have it
    instead: str  # what to write here
    replaces: str = ""  # the field that is not missing where this key stands in for it
    routes: bool = False  # it orders steps, so the net is incomplete without it


def _keys(
    level: str, names: str, origin: str, instead: str, replaces: str = "", routes: bool = False
) -> tuple[ForeignKey, ...]:
    return tuple(ForeignKey(level, name, origin, instead, replaces, routes) for name in names.split())


_ROOT: tuple[ForeignKey, ...] = (
    *_keys("playbook", "on", _GITHUB, _START),
    *_keys("playbook", "triggers trigger", _KESTRA, _START),
    *_keys("playbook", "schedule schedules", f"{_AIRFLOW}, {_ARGO} and {_PREFECT}", _START),
    *_keys("playbook", "schedule_interval start_date catchup", _AIRFLOW, _START),
    *_keys("playbook", "cron crons", f"{_ARGO} and {_PREFECT}", _START),
    *_keys("playbook", "jobs", _GITHUB, _WORKFLOW, "workflow", routes=True),
    *_keys("playbook", "tasks", f"{_KESTRA} and {_AIRFLOW}", _WORKFLOW, "workflow", routes=True),
    *_keys("playbook", "dag templates", f"{_ARGO} and {_AIRFLOW}", _WORKFLOW, "workflow", routes=True),
    *_keys("playbook", "stages pipeline", "CI pipelines", _WORKFLOW, "workflow", routes=True),
    *_keys("playbook", "entrypoint", f"{_ARGO} and {_PREFECT}", "Write `executor: {spec: {entry_step: …}}`."),
    *_keys("playbook", "inputs", f"{_GITHUB} and {_KESTRA}", _WORKLOAD),
    *_keys("playbook", "params parameters", f"{_AIRFLOW} and {_PREFECT}", _WORKLOAD),
    *_keys("playbook", "arguments", _ARGO, _WORKLOAD),
    *_keys("playbook", "variables vars", f"{_KESTRA} and {_PREFECT}", _WORKLOAD),
    *_keys("playbook", "env", _GITHUB, f"{_WORKLOAD} {_ENVIRONMENT}"),
    *_keys("playbook", "secrets", _GITHUB, "Declare credentials under `keychain`; tasks name them with `auth`."),
    *_keys("playbook", "outputs", f"{_GITHUB} and {_KESTRA}", "The result of the last step, or of `executor.spec.final_step`, "
           "is the result of the execution."),
    *_keys("playbook", "id", _KESTRA, "Write `metadata: {name: …, path: …}`."),
    *_keys("playbook", "namespace", f"{_KESTRA} and {_ARGO}", "Write it in front of `metadata.path`: `path: namespace/name`."),
    *_keys("playbook", "concurrency", f"{_GITHUB} and {_KESTRA}", "Write `executor: {spec: {max_parallel: …}}` to bound the "
           "step-runs of one execution."),
    *_keys("playbook", "runs-on", _GITHUB, "Write `executor: {spec: {pool: …}}` to choose the workers."),
    *_keys("playbook", "default_args defaults", f"{_AIRFLOW} and {_GITHUB}", "Write defaults of all steps under `executor.spec`."),
    *_keys("playbook", "onExit errors finally", f"{_ARGO} and {_KESTRA}", "Write a step that runs at the end, after success "
           "and after a halt: `executor: {spec: {final_step: …}}`."),
)  # fmt: skip
_STEP: tuple[ForeignKey, ...] = (
    *_keys("step", "needs", _GITHUB, _ORDER, routes=True),
    *_keys("step", "depends_on", f"{_KESTRA} and Compose", _ORDER, routes=True),
    *_keys("step", "dependsOn", _KESTRA, _ORDER, routes=True),
    *_keys("step", "depends dependencies", _ARGO, _ORDER, routes=True),
    *_keys("step", "upstream", _AIRFLOW, _ORDER, routes=True),
    *_keys("step", "wait_for", _PREFECT, _ORDER, routes=True),
    *_keys("step", "if", _GITHUB, _CONDITION, routes=True),
    *_keys("step", "runIf condition", _KESTRA, _CONDITION, routes=True),
    *_keys("step", "run", _GITHUB, _SHELL, "tool"),
    *_keys("step", "uses", _GITHUB, "Choose a kind: `tool: {kind: http, url: …}`. Another playbook is "
           "`tool: {kind: playbook, path: …}`.", "tool"),
    *_keys("step", "env", _GITHUB, _ENVIRONMENT),
    *_keys("step", "inputs", f"{_GITHUB} and {_KESTRA}", _STEP_INPUT),
    *_keys("step", "params parameters arguments", f"{_AIRFLOW}, {_ARGO} and {_PREFECT}", _STEP_INPUT),
    *_keys("step", "outputs", f"{_GITHUB} and {_ARGO}", "Later steps read the result by the step's name: `{{ <step>.<field> }}`. "
           "`set: {ctx.<name>: …}` keeps a value under a name of its own."),
    *_keys("step", "id", f"{_GITHUB} and {_KESTRA}", "Write `step: <name>`."),
    *_keys("step", "retries retry_delay", f"{_AIRFLOW} and {_PREFECT}", _RETRY),
    *_keys("step", "retryStrategy", _ARGO, _RETRY),
    *_keys("step", "max_retries", _PREFECT, _RETRY),
    *_keys("step", "timeout-minutes", _GITHUB, _TIMEOUT),
    *_keys("step", "execution_timeout", _AIRFLOW, _TIMEOUT),
    *_keys("step", "continue-on-error", _GITHUB, _GO_ON),
    *_keys("step", "continueOn", _ARGO, _GO_ON),
    *_keys("step", "allowFailure", _KESTRA, _GO_ON),
    *_keys("step", "on_failure on_error errors", f"{_PREFECT} and {_KESTRA}", _FAILURE, routes=True),
    *_keys("step", "on_failure_callback", _AIRFLOW, _FAILURE, routes=True),
    *_keys("step", "trigger_rule", _AIRFLOW, "Write `spec: {join: all|any|each}`; a failure is routed by an arc of the failed "
           "step: `when: \"{{ event.name == 'step.failed' }}\"`.", routes=True),
    *_keys("step", "strategy matrix", _GITHUB, _LOOP),
    *_keys("step", "with_items withItems withParam", _ARGO, _LOOP),
    *_keys("step", "foreach for_each", _KESTRA, _LOOP),
    *_keys("step", "runs-on", _GITHUB, "Write `spec: {pool: …}` or `spec: {requires: {tags: […]}}`."),
    *_keys("step", "schedule cron", f"{_AIRFLOW} and {_PREFECT}", _START),
)  # fmt: skip
_TASK: tuple[ForeignKey, ...] = (
    *_keys("task", "needs", _GITHUB, f"Tasks of a pipeline run in file order. For steps: {_ORDER}"),
    *_keys("task", "depends_on dependsOn", _KESTRA, f"Tasks of a pipeline run in file order. For steps: {_ORDER}"),
    *_keys("task", "if", _GITHUB, _CONDITION),
    *_keys("task", "condition runIf", _KESTRA, _CONDITION),
    *_keys("task", "run", _GITHUB, "Write `kind: shell` and `command: …`.", "command"),
    *_keys("task", "uses", _GITHUB, "Choose a kind: `kind: http`, `kind: python`, ….", "kind"),
    *_keys("task", "env", _GITHUB, "Only `kind: shell` has `env`. Put values for templates and code into `input`."),
    *_keys("task", "inputs", f"{_GITHUB} and {_KESTRA}", "Write `input: {…}`."),
    *_keys("task", "retries retry_delay", f"{_AIRFLOW} and {_PREFECT}", _RETRY),
    *_keys("task", "max_retries", _PREFECT, _RETRY),
    *_keys("task", "retryStrategy", _ARGO, _RETRY),
    *_keys("task", "timeout-minutes", _GITHUB, "Write `timeout: …`, in seconds."),
    *_keys("task", "continue-on-error", _GITHUB, _GO_ON),
    *_keys("task", "allowFailure", _KESTRA, _GO_ON),
    *_keys("task", "schedule cron", f"{_AIRFLOW} and {_PREFECT}", _START),
)
_ARC: tuple[ForeignKey, ...] = (
    *_keys("arc", "if", _GITHUB, 'Write `when: "{{ … }}"`.', "when", routes=True),
    *_keys("arc", "condition", _KESTRA, 'Write `when: "{{ … }}"`.', "when", routes=True),
    *_keys("arc", "to goto target", "other workflow tools", "Write `step: <name>`.", "step", routes=True),
    *_keys("arc", "inputs params", f"{_KESTRA} and {_AIRFLOW}", "Write `args: {…}`.", "args"),
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
