"""OTLP over HTTP: spans as protobuf, sent in batches.

Needs the extra `otel`. Every text passes the mask over secrets. Tested in tests/observe/test_traces.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from noetl import __version__
from noetl.masking.readers import ReaderMask
from noetl.model.errors import Unreachable
from noetl.observe.export.target import ExportError
from noetl.observe.export.web import Poster
from noetl.observe.traces.spans import Span
from noetl.trace_context import parse_traceparent

if TYPE_CHECKING:
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Encoded

MOST_SPANS: Final = 512  # of one request
_KIND: Final = "application/x-protobuf"
_PAUSES_S: Final = (0.5, 2.0)
_PATH: Final = "/v1/traces"
_CLIENT, _INTERNAL, _SERVER = 3, 1, 2  # kinds of spans
_ERROR: Final[Any] = 2


def is_available() -> bool:
    """Return whether the extra `otel` is installed."""
    try:
        return find_spec("opentelemetry.proto") is not None
    except ModuleNotFoundError:
        return False


def encoded(spans: Sequence[Span], mask: ReaderMask) -> bytes:
    """Return spans as the body of an OTLP request."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

    masked = cache(mask.line)  # most texts of a batch are the same
    made = ScopeSpans(scope=InstrumentationScope(name="noetl", version=__version__))
    for span in spans:
        _add(made, span, masked)
    whole = ResourceSpans(scope_spans=[made])
    _add_attributes(whole.resource, {"service.name": "noetl", "service.version": __version__}, masked)
    body: bytes = ExportTraceServiceRequest(resource_spans=[whole]).SerializeToString()
    return body


def _add(batch: ScopeSpans, span: Span, masked: Callable[[str], str]) -> None:
    links = filter(None, map(parse_traceparent, span.links))
    made = batch.spans.add(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id),
        name=masked(span.name),
        kind=_kind(span.name),
        start_time_unix_nano=span.start * 1_000_000,
        end_time_unix_nano=span.end * 1_000_000,
        status={"code": _ERROR, "message": masked(span.error)} if span.error else None,
        links=[{"trace_id": bytes.fromhex(one.trace_id), "span_id": bytes.fromhex(one.span_id)} for one in links],
    )
    _add_attributes(made, span.attributes, masked)


def _kind(name: str) -> Any:
    if name == "server.execution":
        return _SERVER
    return _CLIENT if name.startswith(("worker.plugin.http", "worker.sink.")) else _INTERNAL


def _add_attributes(made: Encoded | Resource, found: Mapping[str, Any], masked: Callable[[str], str]) -> None:
    add = made.attributes.add
    for key, value in found.items():
        told = add(key=key).value
        if isinstance(value, str):
            told.string_value = masked(value)
        elif isinstance(value, bool):
            told.bool_value = value
        elif isinstance(value, int):
            told.int_value = value
        elif isinstance(value, float):
            told.double_value = value
        else:
            told.string_value = masked(str(value))


class OtlpSender:
    """Sends spans to a receiver such as Jaeger, Tempo or a collector."""

    def __init__(self, endpoint: str, mask: ReaderMask, headers: Mapping[str, str] | None = None) -> None:
        self._poster = Poster(endpoint.rstrip("/").removesuffix(_PATH), headers)
        self._mask = mask

    async def __aenter__(self) -> OtlpSender:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._poster.close()

    async def send(self, spans: Sequence[Span]) -> None:
        """Send spans. Raises Unreachable."""
        for first in range(0, len(spans), MOST_SPANS):
            await self._post(encoded(spans[first : first + MOST_SPANS], self._mask))

    async def _post(self, body: bytes) -> None:
        why = ""
        for pause in (*_PAUSES_S, None):
            try:
                await self._poster.post(_PATH, body, kind=_KIND)
            except ExportError as error:
                why = str(error)
            else:
                return
            if pause is not None:
                await asyncio.sleep(pause)
        raise Unreachable(f"Traces cannot be sent: {why}.")
