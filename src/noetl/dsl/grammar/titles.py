"""Titles of levels for messages: `task_then` is "the `then` of a task rule"."""

from __future__ import annotations

from noetl.dsl.grammar.types import Level

TITLES: dict[str, str] = {
    "playbook": "a playbook",
    "metadata": "`metadata`",
    "keychain": "a keychain entry",
    "executor": "`executor`",
    "requires": "`executor.requires`",
    "executor_spec": "`executor.spec`",
    "executor_policy": "`executor.spec.policy`",
    "concurrency": "`executor.spec.concurrency`",
    "rate": "`executor.spec.rate`",
    "rollback_policy": "the playbook's `policy`",
    "trigger": "a trigger",
    "trigger_calendar": "a trigger's `calendar`",
    "trigger_webhook": "a webhook",
    "trigger_ended": "a trigger of ends",
    "trigger_subscription": "a subscription",
    "trigger_dispatch": "`dispatch` of a subscription",
    "subscription": "a document of `kind: Subscription`",
    "subscription_spec": "the `spec` of a subscription",
    "subscription_dispatch": "`spec.dispatch` of a subscription",
    "notification": "a notification",
    "step": "a step",
    "step_spec": "a step's `spec`",
    "step_policy": "a step's `spec.policy`",
    "admit_policy": "a gate (`spec.policy.admit`)",
    "admit_rule": "a rule of a gate",
    "admit_else": "the `else` of a gate",
    "admit_then": "the `then` of a gate's rule",
    "lifecycle_policy": "`spec.policy.lifecycle`",
    "failure_policy": "`policy.failure`",
    "loop": "a `loop`",
    "cursor": "`loop.cursor`",
    "frame": "`loop.spec.frame`",
    "loop_spec": "`loop.spec`",
    "loop_policy": "`loop.spec.policy`",
    "next": "`next`",
    "next_spec": "`next.spec`",
    "arc": "an arc of `next`",
    "arc_spec": "the `spec` of an arc",
    "task": "a task",
    "workbook_task": "a task of the workbook",
    "task_spec": "a task's `spec`",
    "assert": "a task's `assert`",
    "task_timeout": "a task's `spec.timeout`",
    "task_policy": "a task's `spec.policy`",
    "task_rule": "a rule of a task policy",
    "task_else": "the `else` of a task policy",
    "task_then": "the `then` of a task rule",
    "output": "a task's `output`",
    "work_requires": "`spec.requires`",
    "result": "`spec.result`",
    "result_store": "a result's `store`",
    "result_select": "an entry of a result's `select`",
    "retries": "`spec.retries`",
    "retry_limits": "`spec.retries.plugin`",
    "sink_limits": "`spec.retries.sink`",
    "delivery_limits": "`spec.retries.dispatch`",
    "timeouts": "`spec.timeouts`",
    "limits": "`spec.limits`",
}
_SPOKEN_WITH_A_VOWEL = ("a", "e", "i", "o", "http", "mcp")


def title(level: Level) -> str:
    """Return the title of a level, including levels of a tool kind."""
    part, _, kind = level.name.partition(":")
    if kind:
        article = "an" if kind.startswith(_SPOKEN_WITH_A_VOWEL) else "a"
        if part == "cursor":
            return f"the cursor of {article} {kind} loop"
        return f"{article} {kind} task" if part == "task" else f"the `spec` of {article} {kind} task"
    if level.name.startswith("tools."):
        _, kind, *path = level.name.split(".")
        return f"`{'.'.join(path)}` of the kind {kind}" if path else f"the kind `{kind}`"
    return TITLES.get(level.name, f"`{level.name}`")


def where(level: Level) -> str:
    """Return the position words of a level: "on a step", "in `executor.spec`"."""
    words = title(level)
    is_a_thing = words.startswith(("a ", "an ")) and not words.endswith("`")
    return f"on {words}" if is_a_thing else f"in {words}"
