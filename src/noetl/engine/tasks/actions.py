"""Actions of a pipeline: run a task, release the lease, or report the end.

All three are plain data. Tested in tests/unit/engine/pipeline/test_pipeline.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.model.outcome import Outcome


class Written(dict[str, Any]):
    """Fields of a task without templates: one map, shared by all attempts."""

    read: Any = None  # cache of the kind's parsed inputs


class RunTask(msgspec.Struct, frozen=True):
    """Run one attempt of a task and resume with its outcome."""

    label: str  # inside workbook calls, prefixed with the labels of the calls and slashes
    kind: str
    fields: Mapping[str, Any]  # the kind's inputs, rendered
    input: Mapping[str, Any]  # args, the step's input and the task's input, merged
    own: Mapping[str, Any]  # the task's own part of it
    attempt: int
    idempotency_key: str
    auth: Any = None
    timeout_ms: float | None = None
    spec: Mapping[str, Any] = {}  # settings by layering, the task's own last
    context: Mapping[str, Any] = {}  # everything in scope except secrets, for code that reads it
    visit: int = 1  # how often jumps have reached the task


class Suspend(msgspec.Struct, frozen=True, omit_defaults=True):
    """Wait for something; with `hold` the worker keeps its lease and advances again."""

    cause: str  # delay, sleep, wait, playbook
    until: int | None = None
    signal: str | None = None
    child: Mapping[str, Any] | None = None  # path, version, payload, return_step
    hold: bool = False
    cut: bool = False  # a time-out ends it before its own end
    civil: bool = False  # `until` is a point of civil time, not the end of a duration


class Finished(msgspec.Struct, frozen=True):
    """The end of the pipeline."""

    status: str  # ok, error, skipped
    result: Any = None
    error: Mapping[str, Any] | None = None
    writes: Mapping[str, Any] = {}  # to `ctx`, by dotted key, in order
    scratch: Mapping[str, Any] = {}  # `step`
    outcome: Outcome | None = None  # of the last task


Next = RunTask | Suspend | Finished
