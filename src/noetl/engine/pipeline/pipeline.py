"""The pipeline: a program counter over the tasks of a step-run or item.

It returns the next action and takes its outcome; it runs nothing and reads no clock. `snapshot` and `restore` carry it
over a crash or a suspension: the restored pipeline does exactly what the original would have done. A snapshot never
contains secrets. A workbook call is one task whose outcome is that of an inner pipeline with its own names.

    pipeline = start(tasks, scopes, info)
    action = advance(pipeline, at)
    while not isinstance(action, Finished):
        action = resume(pipeline, run(action), at)        # a Suspend with `hold`: wait, then advance again

Tested in tests/unit/engine/pipeline/test_*.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from noetl.dsl.tree.playbook import Task
from noetl.engine.pipeline.journal import attempt_ended, attempt_started, note_timeout, page_added
from noetl.engine.pipeline.pages import added, room
from noetl.engine.plan.patches import called
from noetl.engine.tasks.actions import Finished, Next, RunTask, Suspend
from noetl.engine.tasks.memory import Held, Memory, settled_result
from noetl.engine.tasks.policy_rules import CONTINUE, Attempt, Verdict, ended_by_policy, judge, without_policy
from noetl.engine.tasks.render import RenderError, reads_secret
from noetl.engine.tasks.retry import HOLD_MS
from noetl.engine.tasks.run_info import RunInfo, Scopes
from noetl.engine.tasks.sinks import classed, kept_field
from noetl.engine.tasks.task_plan import CODE_KINDS
from noetl.engine.tasks.task_scope import Frame
from noetl.engine.tasks.waits import SUSPENDING, answered, wait_for, woken
from noetl.expr import Envelope, Result
from noetl.model.errors import BadReference
from noetl.model.messages import Record
from noetl.model.outcome import Outcome, TaskError, failed, ok
from noetl.model.refs import compacted

_NOT_GOING_ON: Final = frozenset({"retry", "fail"})
MAX_CALLS: Final = 16  # of workbook tasks inside each other


class Pipeline(Frame):
    """The progress of a run, changed in place by `advance`, `resume` and `wake`."""

    lost: Pipeline | None = None  # the inner pipeline of a failed workbook call
    call: Pipeline | None = None
    ending: Finished | None = None
    fields: Mapping[str, Any] = {}  # rendered fields of the attempt

    def snapshot(self) -> dict[str, Any]:
        """Return everything that another worker needs to continue, as plain data."""
        data = self.memory.as_data()
        if self.call is not None:
            data["call"] = self.call.snapshot()
        if self.ending is not None:
            data["ending"] = msgspec.to_builtins(self.ending)
        return data

    def records(self) -> tuple[Record, ...]:
        """Return the records since the last call, and clear them."""
        records = tuple(self._records)
        self._records.clear()
        return records

    def advance(self, at: int) -> Next:
        """Begin, or continue after a wait or a crash."""
        memory = self.memory
        while self.ending is None:
            if memory.phase == "ready":
                step_result: Next | Outcome = self._begin(at)
            elif memory.phase == "waiting":
                outcome = woken(memory.waiting, memory.began, at) if memory.waiting else None
                if outcome is None and memory.waiting is not None:
                    return memory.waiting
                step_result = outcome or failed("unknown", "nothing to wait for")
            elif memory.phase == "delayed" and at < memory.until:
                return Suspend("delay", until=memory.until, hold=memory.until - at <= HOLD_MS)
            elif self.call is not None:
                step_result = self._handle_call(self.call.advance(at), at)
            else:
                step_result = self._begin(at)
            if not isinstance(step_result, Outcome):
                return step_result
            paused = self._settle(step_result, at)
            if paused is not None:
                return paused
        return self.ending

    def resume(self, outcome: Outcome, at: int, stored: Mapping[str, Any] | None = None) -> Next:
        """Continue with a task's outcome; `stored` is the reference of a large result."""
        if self.ending is not None:
            return self.ending
        if self.call is not None:
            call_result = self._handle_call(self.call.resume(outcome, at, stored), at)
            if not isinstance(call_result, Outcome):
                return call_result
            outcome = call_result
        return self._settle(outcome, at, stored) or self.advance(at)

    def wake(self, woke: Mapping[str, Any], at: int, stored: Mapping[str, Any] | None = None) -> Next:
        """Continue after a suspension.

        `woke` is {by: timer}, {by: signal, data} or {by: child, status, result, error}.

        `stored` is the reference of a child's stored result.
        """
        memory = self._levels()[-1].memory
        outcome = answered(memory.waiting, woke) if memory.waiting is not None else None
        if outcome is not None:
            return self.resume(outcome, at, stored)
        if woke.get("by") == "timer":  # the server's clock decides, not the worker's
            at = max(at, self.due or at)
        return self.advance(at)

    @property
    def due(self) -> int | None:
        """When a wait ends by time; None if only a signal or a child ends it."""
        levels = self._levels()
        memory = levels[-1].memory
        own = memory.waiting.until if memory.waiting is not None else memory.until
        ends = [at for at in (own, *(call.memory.deadline for call in levels[1:])) if at]  # 0: no deadline
        return min(ends, default=own)

    def _levels(self) -> list[Pipeline]:
        return [self] if self.call is None else [self, *self.call._levels()]

    def recall(self, call: Mapping[str, Any] | None, load: Callable[[Mapping[str, Any]], Any] | None) -> None:
        """Restore the rendered fields or the call of a running attempt."""
        began = self.memory.began
        try:
            task = self._called_task() if call is not None else None
            if call is not None and task is not None:
                inner = self._inner(task, began, Memory())
                self.call = restore(inner.tasks, call, inner.scopes, inner.info, load)
            elif self.task.kind != "workbook":
                within = self.renderer(began)
                within = within.over(input=self.inputs(within)[0])
                self.fields = within.fields(self.task.fields, self.info.kinds.get(self.task.kind), self.task.kind)
        except RenderError:
            pass  # it did not render before either

    def _begin(self, at: int) -> Next | Outcome:
        memory, plan = self.memory, self.plan
        if memory.phase != "running":  # else its worker was lost during the attempt
            if memory.count_transition() > plan.layered.most_transitions:
                return self._too_many(plan.layered.most_transitions)
            if memory.phase == "ready":
                self.visit()
            if memory.count_attempt(at) > 1 or not self.is_quiet:
                self._records.append(attempt_started(self, at))
        memory.run(at)
        try:
            return self._render(plan.task, at)
        except RenderError as error:
            return failed("template", str(error))

    def _too_many(self, most: int) -> Next:
        message = f"the pipeline started more than {most:,} tasks; a jump probably never ends"
        return self._fail(failed("unknown", message, code="MAX_TRANSITIONS").error)

    def _render(self, task: Task, at: int) -> Next | Outcome:
        fields: Mapping[str, Any] | None = self.plan.fields
        self.fields = fields or {}
        attempt, visit, key = self.memory.attempt, self.memory.visits[task.label], self.key
        if fields is not None and self.plan.timeout is None:  # nothing to render
            whole, spec = self.surrounding(at), self.settings
            return RunTask(self.named, task.kind, fields, whole, {}, attempt, key, None, None, spec, {}, visit)
        renderer = self.renderer(at)
        whole, own = self.inputs(renderer)
        asserts = self.plan.asserts
        if asserts is not None:
            refused = asserts.refused(self.named, (whole, _written(task)), renderer.names)
            if refused is not None:
                return refused
        if task.kind == "workbook":
            return self._call(task, at)
        within = renderer.over(input=whole) if whole else renderer
        if fields is None:
            fields = self.fields = within.fields(task.fields, self.info.kinds.get(task.kind), task.kind)
        timeout = self.timeout_ms(within)
        if timeout is not None:
            note_timeout(self._records, self.key, timeout)
        if task.kind in SUSPENDING:
            if task.kind == "playbook" and any(reads_secret(value.data) for value in self.payload_values()):
                raise RenderError("input", "a secret of `keychain` must not be given to a child", "let it use `auth`")
            waiting = wait_for(task.kind, fields, whole, timeout, at)
            if task.kind == "playbook" and self.holds_secret([whole, fields.get("payload")]):
                raise RenderError("input", "a secret of a credential must not be given to a child", "let it use `auth`")
            if isinstance(waiting, Suspend):
                self.memory.wait(waiting)
                return woken(waiting, at, at) or waiting
            return waiting
        kept = kept_field(task.kind, fields)
        if kept is not None and (self.holds_secret(fields) or self.holds_secret(own)):
            raise RenderError(kept, "a secret of a credential must not be written down", "name it with `auth`")
        auth = within.value(task.auth.data, "auth") if task.auth is not None else None
        spec = self.settings
        if "result" in spec or "timeout" in spec:
            rendered = {
                name: within.value(spec[name], f"spec.{name}") for name in ("result", "timeout") if name in spec
            }
            spec = {**spec, **rendered}
            if self.plan.pages is not None:
                spec["result"] = room(spec.get("result"), self.memory.results.get(task.label))
        context = self.context(whole) if task.kind in CODE_KINDS else {}
        return RunTask(self.named, task.kind, fields, whole, own, attempt, key, auth, timeout, spec, context, visit)

    def _settle(self, outcome: Outcome, at: int, stored: Mapping[str, Any] | None = None) -> Next | None:
        memory, task, has_policy = self.memory, self.task, self.plan.has_policy
        memory.settle()
        self.call, verdict = None, CONTINUE
        if self.plan.asserts is not None and outcome.status == "ok":
            outcome = self.plan.asserts.checked(self.named, outcome)
        if has_policy or outcome.error is not None or self.info.caller:  # else nothing reads the rest of it
            began = memory.began
            meta = {"started_at": began, "duration_ms": at - began, **outcome.meta, "attempt": memory.attempt}
            outcome = msgspec.structs.replace(outcome, meta=meta)
            if outcome.error is not None:
                outcome = classed(task, outcome, outcome.error)
            attempt = Attempt(
                task, self.fields, memory.attempt, self.key, self.info.seed, self.settings, self.info.is_secret
            )
            if has_policy:
                return self._judge(attempt, outcome, at, stored)
            verdict = without_policy(attempt, outcome)
        self._records += attempt_ended(self, outcome, verdict, at)
        return self._act(verdict, outcome, at, stored)

    def _judge(self, attempt: Attempt, outcome: Outcome, at: int, stored: Mapping[str, Any] | None) -> Next | None:
        renderer = self.renderer(self.memory.began)
        with suppress(RenderError):  # the outcome reports it already
            renderer = renderer.over(input=self.inputs(renderer)[0])
        data = outcome.as_data() | ({"ref": stored.get("ref")} if stored else {})
        if outcome.status == "ok" and attempt.task.sets:
            view = renderer.over(outcome=Envelope(data), output=Result(outcome.result))
            problem = self.write(attempt.task.sets, view)
            if isinstance(problem, TaskError):
                return self._refuse(problem, outcome, at)
        renderer = renderer.over(outcome=Envelope(data), output=Envelope(data))
        verdict = judge(attempt, outcome, renderer)
        is_error = outcome.status != "ok"
        own = self.plan.after_error if is_error and verdict.do not in _NOT_GOING_ON else ()
        skipped = self.write((*own, *verdict.sets), renderer, failed=is_error)
        if isinstance(skipped, TaskError):
            return self._refuse(skipped, outcome, at)
        if skipped:
            verdict = msgspec.structs.replace(verdict, skipped=tuple(skipped))
        self._records += attempt_ended(self, outcome, verdict, at)
        return self._act(verdict, outcome, at, stored)

    def _refuse(self, problem: TaskError, outcome: Outcome, at: int) -> Next:
        """Fail a task whose `set` cannot be applied, whatever its outcome was."""
        refused = msgspec.structs.replace(outcome, status="error", error=problem)
        self._records += attempt_ended(self, refused, Verdict("fail"), at)
        return self._fail(problem, outcome)

    def _act(self, verdict: Verdict, outcome: Outcome, at: int, stored: Mapping[str, Any] | None) -> Next | None:
        memory, label = self.memory, self.task.label
        if verdict.do == "retry":
            memory.delay(at + verdict.delay_ms)
            return None
        memory.proceed()
        if verdict.do == "fail":
            failure = verdict.error or outcome.error or ended_by_policy(label)
            return self._fail(failure, outcome, stored)
        if verdict.do == "skip":
            return self._next(memory.counter + 1, outcome, "skipped")
        try:
            held = self._held(outcome, at, stored)
        except BadReference as problem:
            failure = TaskError("schema", f"the pages of `{label}` cannot become one: {problem}", code="PAGES")
            return self._fail(failure, outcome, stored)
        is_prev = not self.plan.is_aside and (outcome.status == "ok" or verdict.do == "break")
        memory.keep(label, held, is_prev=is_prev)
        if verdict.do == "break":
            return self._finished("ok", outcome)
        if verdict.do == "jump":
            target = self._target(verdict.to)
            if target is None:
                error = failed("unknown", f"the policy of `{label}` jumps to `{verdict.to}`, which is not there").error
                return self._fail(error, outcome)
            return self._next(target, outcome)
        return self._next(memory.counter + 1, outcome)

    def _held(self, outcome: Outcome, at: int, stored: Mapping[str, Any] | None) -> Held:
        how, before = self.plan.pages, self.memory.results.get(self.task.label)
        if how is None:
            return Held(outcome.result, stored)
        if outcome.status != "ok":
            return before if before is not None else Held(outcome.result, stored)
        held = added(before, outcome.result, stored, how)
        if held.pages is not None:
            self._records += page_added(self, held.pages, at)
        return held

    def _target(self, to: str | None) -> int | None:
        if to == "previous":
            return self.memory.counter - 1 if self.memory.counter > 0 else None
        return next((index for index, task in enumerate(self.tasks) if task.label == to), None)

    def _next(self, counter: int, outcome: Outcome, status: str = "ok") -> Next | None:
        if counter < len(self.tasks):
            self.at_task(counter)
            return None
        return self._finished(status, outcome)

    def _finished(self, status: str, outcome: Outcome) -> Next:
        memory = self.memory
        memory.end()
        result = settled_result(self.info.step, self.tasks, memory)
        self.ending = ending = Finished(status, result, None, memory.writes, memory.step, outcome)
        return ending

    def _fail(
        self, error: TaskError | None, outcome: Outcome | None = None, stored: Mapping[str, Any] | None = None
    ) -> Next:
        memory, payload = self.memory, None if error is None else {**msgspec.to_builtins(error), "task": self.named}
        result = stored or (compacted(outcome.result) if outcome is not None else None)
        memory.end()
        self.ending = Finished("error", result, payload, memory.writes, memory.step, outcome)
        return self.ending

    def _call(self, task: Task, at: int) -> Next | Outcome:
        name, self.lost = called(task), None
        if self.info.place.count("/") >= MAX_CALLS:
            return failed("unknown", f"workbook tasks call each other more than {MAX_CALLS} deep, at `{name}`")
        inner_task = self._called_task()
        if inner_task is None:
            return failed("not_found", f"the workbook has no task `{name}`")
        renderer = self.renderer(at)
        limit = self.timeout_ms(renderer.over(input=self.inputs(renderer)[0]))
        self.call = self._inner(inner_task, at, _memory(limit, at))
        return self._handle_call(self.call.advance(at), at)

    def _called_task(self) -> Task | None:
        patched = self.info.patched.get(f"{self.info.place}{self.task.label}/")
        name = called(self.task)
        return patched or next((task for task in self.info.workbook if task.label == name), None)

    def _inner(self, task: Task, at: int, memory: Memory) -> Pipeline:
        """Build the pipeline of a call, which sees none of the caller's names."""
        renderer = self.renderer(at)
        call_input = {**self.step_input(renderer.at), **self.inputs(renderer)[1]}
        scopes = Scopes(
            workload=self.scopes.workload,
            ctx=self.ctx,
            keychain=self.scopes.keychain,
            job=self.scopes.job,
            call=call_input,
        )
        place = f"{self.info.place}{self.task.label}/"
        info = msgspec.structs.replace(self.info, caller=self.key, place=place, input={}, step=task.label, plans=())
        return Pipeline((task,), scopes, info, memory)

    def _handle_call(self, action: Next, at: int) -> Next | Outcome:
        inner = self.call
        if inner is not None:
            self._records += inner.records()
        if not isinstance(action, Finished):
            return action if inner is None or not inner.memory.deadline else _bounded(action, inner, at)
        outcome = action.outcome
        if action.status == "error":
            self.lost = inner
            error = {name: value for name, value in (action.error or {}).items() if name != "task"}
            task_error = msgspec.convert(error, TaskError)
            return (
                msgspec.structs.replace(outcome, status="error", error=task_error)
                if outcome
                else Outcome("error", error=task_error)
            )
        return ok() if action.status == "skipped" or outcome is None else outcome


def start(tasks: tuple[Task, ...], scopes: Scopes, info: RunInfo, records: list[Record] | None = None) -> Pipeline:
    """Create a pipeline that appends to `records`, or keeps its own."""
    pipeline = Pipeline(tasks, scopes, info, Memory(iter=dict(scopes.iter)), records)
    if not tasks:
        pipeline.ending = Finished("ok")
    return pipeline


def restore(
    tasks: tuple[Task, ...],
    snapshot: Mapping[str, Any],
    scopes: Scopes,
    info: RunInfo,
    load: Callable[[Mapping[str, Any]], Any] | None = None,
    records: list[Record] | None = None,
) -> Pipeline:
    """Rebuild the pipeline of a snapshot; `load` returns the value of a stored result."""
    pipeline = Pipeline(tasks, scopes, info, Memory.of(snapshot, load), records)
    if "ending" in snapshot:
        pipeline.ending = msgspec.convert(snapshot["ending"], Finished)
    elif pipeline.memory.phase == "running":
        pipeline.recall(snapshot.get("call"), load)
    return pipeline


def _written(task: Task) -> dict[str, Any]:
    """Return the fields of a task's tool as written, and without those that are null."""
    return {name: value.data for name, value in task.fields.items() if value.data is not None}


def _memory(limit_ms: float | None, at: int) -> Memory:
    return Memory() if limit_ms is None else Memory(limit_ms=limit_ms, deadline=at + round(limit_ms))


def _bounded(action: RunTask | Suspend, call: Frame, at: int) -> RunTask | Suspend | Outcome:
    deadline = call.memory.deadline
    if at >= deadline:
        seconds = call.memory.limit_ms / 1000
        message = f"the call of the workbook task `{call.task.label}` took longer than its time-out of {seconds:g} s and was ended"
        return failed("timeout", message, retryable=True)
    if isinstance(action, RunTask):
        left = float(deadline - at)
        is_shorter = action.timeout_ms is not None and action.timeout_ms <= left
        return action if is_shorter else msgspec.structs.replace(action, timeout_ms=left)
    is_earlier = action.until is not None and action.until <= deadline
    return action if is_earlier else msgspec.structs.replace(action, until=deadline, civil=False)


advance, resume, wake = Pipeline.advance, Pipeline.resume, Pipeline.wake
