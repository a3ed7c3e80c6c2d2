"""Trace contexts in the form of W3C, and ids of spans, derived from names.

The id of a span is a hash of its execution, step-run and attempt, so the engine, a worker and a reader of the log make the same
trace. Tested in tests/unit/test_trace_context.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

TRACING: Final = "tracing"  # setting of a server: executions have a trace, of which `sample_rate` is exported
_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_NONE: Final = ("0" * 32, "0" * 16)
_OTHER: Final = re.compile(r"[^\x21-\x2b\x2d-\x3a\x3c\x3e-\x7e]")  # what a value of `tracestate` cannot hold


class TraceContext(NamedTuple):
    """A trace, the span that others are children of, and whether it is exported."""

    trace_id: str
    span_id: str
    sampled: bool

    @property
    def is_made_up(self) -> bool:
        """Whether a command made it, so that there is no such span."""
        return self.span_id == self.trace_id[:16]

    def to(self, span_id: str) -> str:
        """Return the traceparent of a span of this trace."""
        return f"00-{self.trace_id}-{span_id}-{'01' if self.sampled else '00'}"

    def __str__(self) -> str:
        return self.to(self.span_id)


def parse_traceparent(text: str) -> TraceContext | None:
    """Return the context of a W3C `traceparent`; None if it is none."""
    found = _TRACEPARENT.fullmatch(text.strip())
    if found is None or found[1] == _NONE[0] or found[2] == _NONE[1]:
        return None
    return TraceContext(found[1], found[2], bool(int(found[3], 16) & 1))


def new_trace(trace_id: str) -> str:
    """Return the context of a new trace without a span outside, which is exported."""
    return str(TraceContext(trace_id, trace_id[:16], True))


def trace_id_of(execution_id: str) -> str:
    """Return the trace of an execution that nothing gave one."""
    return blake2b(f"trace:{execution_id}".encode(), digest_size=16).hexdigest()


def span_id_of(*names: object) -> str:
    """Return the id of the span that has these names."""
    return _hash("\0".join(map(str, names)))


def _hash(name: str) -> str:
    return blake2b(name.encode(), digest_size=8).hexdigest()


def is_sampled(trace_id: str, rate: float) -> bool:
    """Return whether a share of all traces includes this one; every process agrees."""
    return int(trace_id[-13:], 16) < rate * 16**13


def trace_of(
    execution_id: str, given: str, workload: Mapping[str, Any], settings: Mapping[str, Any] | None
) -> TraceContext | None:
    """Return the trace of an execution, with its root span; None if it has none.

    `given` is the context that it was started in, `settings` are those of the server, if it traces.
    """
    rate = None if settings is None else settings.get("sample_rate", 0)
    return _trace_of(execution_id, given, rate, is_forced=workload.get("trace") is True)


@lru_cache(maxsize=4096)
def _trace_of(execution_id: str, given: str, rate: float | None, *, is_forced: bool) -> TraceContext | None:
    outer = parse_traceparent(given) if given else None
    if outer is not None:
        return TraceContext(outer.trace_id, span_id_of(execution_id), is_forced or outer.sampled)
    if rate is None:
        return None
    trace_id = trace_id_of(execution_id)
    return TraceContext(trace_id, span_id_of(execution_id), is_forced or is_sampled(trace_id, rate))


def dispatch_span(execution_id: str, run_id: str, chunk: str | None = None) -> str:
    """Return the id of the span of a step-run, or of one range of its loop."""
    return _hash(f"{execution_id}\0{run_id}" if chunk is None else f"{execution_id}\0{run_id}\0chunk\0{chunk}")


def attempt_span(run_id: str, task_key: str, attempt: int) -> str:
    """Return the id of the span of an attempt; `task_key` is the idempotency key."""
    return _hash(f"{run_id}\0{task_key}\0{attempt}")


def trace_headers(context: str, span_id: str, execution_id: str, step: str, message_id: str) -> dict[str, str]:
    """Return the headers with which a request continues a trace."""
    found = parse_traceparent(context)
    if found is None:
        return {}
    state = ";".join(
        f"{key}:{_OTHER.sub('_', value)}" for key, value in (("e", execution_id), ("s", step), ("m", message_id))
    )
    return {"traceparent": found.to(span_id), "tracestate": f"noetl={state[:256]}"}
