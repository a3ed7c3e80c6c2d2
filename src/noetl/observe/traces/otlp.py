"""OTLP over HTTP: spans as protobuf, sent in batches.

Needs the extra `otel`. Every text passes the mask over secrets. Tested in tests/observe/test_traces.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
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
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
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
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

    scope = InstrumentationScope(name="noetl", version=__version__)
    found = ScopeSpans(scope=scope, spans=[_span(span, mask) for span in spans])
    resource = Resource(attributes=_attributes({"service.name": "noetl", "service.version": __version__}))
    whole = ResourceSpans(resource=resource, scope_spans=[found])
    body: bytes = ExportTraceServiceRequest(resource_spans=[whole]).SerializeToString()
    return body


def _span(span: Span, mask: ReaderMask) -> Encoded:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Encoded
    from opentelemetry.proto.trace.v1.trace_pb2 import Status

    shown = {key: mask.line(value) if isinstance(value, str) else value for key, value in span.attributes.items()}
    links = filter(None, map(parse_traceparent, span.links))
    return Encoded(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id),
        name=mask.line(span.name),
        kind=_kind(span.name),
        start_time_unix_nano=span.start * 1_000_000,
        end_time_unix_nano=span.end * 1_000_000,
        attributes=_attributes(shown),
        status=Status(code=_ERROR, message=mask.line(span.error)) if span.error else None,
        links=[Encoded.Link(trace_id=bytes.fromhex(one.trace_id), span_id=bytes.fromhex(one.span_id)) for one in links],
    )


def _kind(name: str) -> Any:
    if name == "server.execution":
        return _SERVER
    return _CLIENT if name.startswith(("worker.plugin.http", "worker.sink.")) else _INTERNAL


def _attributes(found: Mapping[str, Any]) -> list[KeyValue]:
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue

    return [KeyValue(key=key, value=_value(value)) for key, value in found.items()]


def _value(value: Any) -> AnyValue:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue

    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    return AnyValue(double_value=value) if isinstance(value, float) else AnyValue(string_value=str(value))


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
