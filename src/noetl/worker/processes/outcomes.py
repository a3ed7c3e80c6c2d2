"""Outcomes of Python code: from what a child answered, or from how it ended.

Texts that come from a child are masked before they are cut. Tested in tests/unit/worker/processes/test_children.py.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from noetl.model.outcome import Outcome, failed, ok
from noetl.ports.work import Masked
from noetl.worker.processes.fork_client import Child
from noetl.worker.processes.python_runner import MOST_TEXT

SETTINGS: Final = {
    "memory": "NOETL_TASK_MEMORY_MB",
    "processes": "NOETL_TASK_PROCESSES",
    "files": "NOETL_TASK_OPEN_FILES",
    "disk": "NOETL_TASK_DISK_MB",
    "cpu_s": "NOETL_TASK_CPU_SECONDS",
}
EXCEEDED: Final = {"processes": "too many processes and threads", "disk": "too much data in its folder"}
_MOST_SOURCE: Final = 160  # characters of a line of code in an error
_NO_PROCESS: Final = "run fewer tasks on this machine, or raise its limits of processes and memory"
_NO_MEMORY: Final = "; the machine may have run out of memory"


def outcome_of(answer: Mapping[str, Any], masked: Masked) -> Outcome:
    error = answer.get("error")
    if error is None:
        return ok(answer["result"])
    names = ("code", "retryable", "retry_after", "details", "sent")
    more = {name: error[name] for name in names if name in error}
    where = error.get("where")
    if where is not None:
        more["where"] = _short_sources(where, masked)
        if "frames" in where:
            more["where"]["frames"] = [_short_sources(frame, masked) for frame in where["frames"]]
    message = error.get("before", "") + _short(error["said"], MOST_TEXT, masked) + error.get("after", "")
    outcome = failed(error["kind"], message, class_=error.get("class", ""), **more)
    if "traceback" not in error:
        return outcome
    stack = "".join(_short(part, MOST_TEXT, masked) for part in error["traceback"])
    py = {"exception_type": error["exception_type"], "traceback": stack}
    return msgspec.structs.replace(outcome, helpers={"py": py})


def _short_sources(place: Mapping[str, Any], masked: Masked) -> dict[str, Any]:
    return {**place, "source": _short(place["source"], _MOST_SOURCE, masked)}


def _short(text: str, most: int, masked: Masked) -> str:
    """Return at most `most` characters of a text from a child.

    A child that cut it gives one character more than it may.
    """
    if len(text) <= most:
        return text
    return masked(text, "end" if len(text) > MOST_TEXT else "")[:most] + "…"


def garbled() -> Outcome:
    message = "the code wrote to a file that is not its own, so its result cannot be read"
    return failed("python", message, code="PY_GARBLED")


def gone(status: int, child: Child) -> Outcome:
    if child.refused:
        text = f"no process could be started for the code: {os.strerror(child.refused)}; {_NO_PROCESS}"
        return failed("python", text, code="PY_NOT_STARTED", retryable=True)
    exceeded = child.exceeded
    why, code = reason(status)
    why = f"was ended for {EXCEEDED[exceeded]}" if exceeded else why
    why += f" ({SETTINGS[exceeded]} changes the limit)" if exceeded else ""
    text = f"the process that ran the code {why} before it gave a result"
    return failed("python", text, code=f"PY_{code}", details={"returncode": status})


def reason(status: int) -> tuple[str, str]:
    """Describe how a process ended: for people, and as a code."""
    if status >= 0:
        return f"ended itself with exit code {status}", f"EXIT_{status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"SIG{-status}"
    return f"was killed by {name}" + (_NO_MEMORY if name == "SIGKILL" else ""), name
