"""A step that is one plain task: what its pipeline comes to when the first attempt goes well, without a pipeline.

Of such a task nothing is rendered, and nothing but its success is needed to go on. Where the attempt does not go well, a
pipeline that begins at the same time asks for the same attempt, and takes its outcome from there. Tested in
tests/unit/engine/test_lone.py, which compares the two.
"""

from __future__ import annotations

from noetl.engine.actions import RunTask
from noetl.engine.run_info import RunInfo
from noetl.engine.task_plan import TaskPlan
from noetl.model.ids import idempotency_key, run_key
from noetl.model.messages import Record
from noetl.model.work import WorkItem


def lone_task(info: RunInfo) -> TaskPlan | None:
    """Give the only task of a step that is no loop, where it is plain; None where it is not, or one of several."""
    if len(info.plans) != 1 or info.input or info.iterator:
        return None
    [plan] = info.plans
    is_plain = (
        plan.fields is not None
        and not plan.has_policy
        and plan.pages is None
        and plan.timeout is None
        and not plan.layered.is_durable
    )
    return plan if is_plain and plan.layered.most_transitions > 0 else None


def first_attempt(plan: TaskPlan, work: WorkItem) -> RunTask:
    """Give the first attempt of a lone task."""
    task = plan.task
    key = idempotency_key(run_key(work.execution_id, work.step, work.number), task.label, 1, plan.sink)
    return RunTask(
        task.label, task.kind, plan.fields or {}, dict(work.scopes["args"]), {}, 1, key, spec=plan.layered.given
    )


def began(plan: TaskPlan, attempt: RunTask, at: int) -> Record:
    """Give the record of its beginning."""
    return Record("task.started", at, attempt.label, attempt.idempotency_key, payload=plan.told)


def went_well(attempt: RunTask, began: int, at: int) -> Record:
    """Give the record of its success; its result is that of the step where it is no map."""
    key, told = attempt.idempotency_key, {"started_at": began}
    return Record("task.done", at, attempt.label, key, None, 1, "ok", float(at - began), told)
