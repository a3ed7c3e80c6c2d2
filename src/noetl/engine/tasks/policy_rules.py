"""Decides what follows an outcome: the task's policy, or the runtime's retry.

A verdict is data: the action, the writes, the delay, and the values that the conditions read. The pipeline acts on it. Tested in tests/unit/engine/pipeline/test_rules.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from noetl.dsl.tree.playbook import Action, Assign, Task, Value
from noetl.engine.plan.plan import template
from noetl.engine.tasks.render import Renderer, RenderError, reads_secret, shown
from noetl.engine.tasks.retry import Schedule, asked_ms, chance, delay_ms, may_run_again, runtime_schedule
from noetl.engine.tasks.sinks import sink_id
from noetl.expr import TemplateError
from noetl.model.outcome import Outcome, TaskError, failed


class Verdict(Struct, frozen=True):
    """The next action, and its reason."""

    do: str  # continue, retry, jump, break, fail, skip
    rule: int | None = None  # the rule that matched; None without a match or policy
    is_else: bool = False
    to: str | None = None
    delay_ms: int = 0
    sets: tuple[Assign, ...] = ()
    error: TaskError | None = None  # why it fails, if the outcome has no error
    read: Mapping[str, Any] = {}
    problems: tuple[str, ...] = ()
    skipped: tuple[Mapping[str, str], ...] = ()  # writes after a failure that cannot be read: key, reason

    def payload(self) -> dict[str, Any]:
        """Return the verdict as its event records it."""
        data: dict[str, Any] = {"rule": self.rule, "do": self.do, "read": dict(self.read)}
        if self.is_else:
            data["else"] = True
        if self.to is not None:
            data["to"] = self.to
        if self.do == "retry":
            data["delay_ms"] = self.delay_ms
        if self.problems:
            data["problems"] = list(self.problems)
        if self.skipped:
            data["skipped"] = list(self.skipped)
        return data


CONTINUE: Final = Verdict("continue")  # of a task that succeeded without a policy


class Attempt(Struct, frozen=True):
    """The attempt under judgement."""

    task: Task
    fields: Mapping[str, Any]  # rendered; empty if rendering failed
    number: int
    key: str
    seed: str
    settings: Mapping[str, Any]
    is_secret: Callable[[Any], bool] | None = None  # whether a value contains a resolved secret


def judge(attempt: Attempt, outcome: Outcome, renderer: Renderer) -> Verdict:
    """Decide on an outcome, which `renderer` has as `outcome`."""
    if attempt.task.rules is None:
        return without_policy(attempt, outcome)
    read: dict[str, Any] = {}
    problems: list[str] = []
    for index, rule in enumerate(attempt.task.rules):
        holds, problem = _holds(rule.when, renderer, read, f"rule {index}", attempt)
        if problem is not None:
            problems.append(problem)
            if attempt.settings.get("on_when_error") == "fail_step":
                error = failed("template", problem).error
                return Verdict("fail", index, error=error, read=read, problems=tuple(problems))
        if holds:
            return _acting(attempt, outcome, renderer, rule.then, index, rule.is_else, read, tuple(problems))
    unmatched = "fail" if outcome.status == "error" and attempt.task.on_unmatched == "fail" else "continue"
    return Verdict(unmatched, read=read, problems=tuple(problems))


def without_policy(attempt: Attempt, outcome: Outcome) -> Verdict:
    """Decide on an outcome without rules: the runtime retries what may be fixed."""
    error = outcome.error
    if outcome.status == "ok" or error is None:
        return CONTINUE if outcome.status == "ok" else Verdict("fail")
    stores = sink_id(attempt.task) is not None
    schedule = runtime_schedule(attempt.settings, stores)
    idempotent = attempt.settings.get("idempotent") is True
    if attempt.number >= schedule.attempts or not may_run_again(attempt.task.kind, attempt.fields, error, idempotent):
        ignored = stores and attempt.settings.get("on_sink_fail") == "async_ignore"
        return Verdict("continue" if ignored else "fail")
    delay = delay_ms(schedule, attempt.number, chance(attempt.seed, attempt.key, attempt.number))
    return Verdict("retry", delay_ms=max(delay, asked_ms(error)))


def ended_by_policy(label: str) -> TaskError:
    """Return the error of a pipeline that a policy ended after an outcome without one."""
    return TaskError("unknown", f"the policy of `{label}` ended the pipeline with `fail`", code="POLICY_FAIL")


def _holds(
    when: Value | None, renderer: Renderer, read: dict[str, Any], where: str, attempt: Attempt
) -> tuple[bool, str | None]:
    if when is None or isinstance(when.data, bool):
        return when is None or when.data, None
    compiled = template(when.data) if isinstance(when.data, str) else None
    if compiled is None:
        return False, f"the condition {when.data!r} is not a template"
    try:
        calls, names = renderer.functions(where), renderer.names
        budget = renderer.fuel.budget(attempt.settings.get("evaluate_when_timeout_ms"))
        value, seen = compiled.evaluate_traced(names, functions=calls, budget=budget)
        read.update({path: shown(found, path, attempt.is_secret) for path, found in seen.items()})
        return (bool(value) if compiled.kind == "expression" else compiled.test(names, budget, functions=calls)), None
    except TemplateError as error:
        return False, error.message


def _acting(
    attempt: Attempt,
    outcome: Outcome,
    renderer: Renderer,
    action: Action,
    index: int,
    is_else: bool,
    read: Mapping[str, Any],
    problems: tuple[str, ...],
) -> Verdict:
    def verdict(do: str, **more: Any) -> Verdict:
        return Verdict(do, index, is_else, sets=action.sets, read=read, problems=problems, **more)

    if action.do == "jump":
        return verdict("jump", to=action.to)
    if action.do != "retry":
        return verdict(action.do)
    try:
        schedule = _schedule(action, renderer, attempt)
    except (RenderError, ValueError) as error:
        return verdict("fail", error=failed("template", f"the retry of rule {index} is not usable: {error}").error)
    if attempt.number >= schedule.attempts:
        error_ = None if outcome.status == "error" else _exhausted(attempt.number)
        return verdict("fail", error=error_)
    delay = delay_ms(schedule, attempt.number, chance(attempt.seed, attempt.key, attempt.number))
    if action.delay is None:  # the rule sets no delay; the other side may have
        asked = asked_ms(outcome.error)
        delay = max(delay, asked if schedule.max_ms is None else min(asked, int(schedule.max_ms)))
    return verdict("retry", delay_ms=delay)


def _exhausted(attempts: int) -> TaskError | None:
    message = f"the policy asked for another attempt after the last of {attempts}"
    return failed("unknown", message, code="RETRIES_EXHAUSTED").error


def _schedule(action: Action, renderer: Renderer, attempt: Attempt) -> Schedule:
    def rendered(name: str, value: Value | None) -> Any:
        if value is None:
            return None
        if reads_secret(value.data):
            raise RenderError(name, "it must not depend on a secret")
        return renderer.value(value.data, name)

    def seconds(name: str, value: Value | None) -> float | None:
        value_ = rendered(name, value)
        return None if value_ is None else _number(name, value_) * 1000

    backoff = rendered("backoff", action.backoff) or "none"
    if backoff not in ("none", "fixed", "linear", "exponential"):
        raise ValueError(f"`backoff` is {backoff!r}")
    attempts = rendered("attempts", action.attempts)
    delay = seconds("delay", action.delay)
    jitter = rendered("jitter", action.jitter)
    return Schedule(
        attempts=runtime_schedule(attempt.settings, sink_id(attempt.task) is not None).attempts
        if attempts is None
        else int(_number("attempts", attempts)),
        delay_ms=delay if delay is not None else 1000.0 if backoff in ("linear", "exponential") else 0.0,
        backoff=backoff,
        max_ms=seconds("max_delay", action.max_delay),
        jitter=0.5 if jitter is True else 0.0 if jitter in (None, False) else min(1.0, _number("jitter", jitter)),
    )


def _number(name: str, value: Any) -> float:
    try:
        result = float(value) if not isinstance(value, bool) else -1.0
    except (TypeError, ValueError):
        result = -1.0
    if not 0 <= result < 2**53:
        raise ValueError(f"`{name}` is {value!r}, which is no usable number")
    return result
