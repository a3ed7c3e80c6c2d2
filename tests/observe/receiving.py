"""A real OTLP receiver, and a web server whose answers name their span."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Received

from tests.tools.web import Web

REMOTE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Receiver(Web):
    """An OTLP receiver."""

    @property
    def spans(self) -> list[Received]:
        """The spans that it got, decoded."""
        found: list[Received] = []
        for asked in self.asked:
            if asked.path == "/v1/traces":
                assert asked.headers["content-type"] == "application/x-protobuf"
                request = ExportTraceServiceRequest.FromString(asked.body)
                found += [
                    span for whole in request.resource_spans for scope in whole.scope_spans for span in scope.spans
                ]
        return found

    def of(self, trace_id: str) -> list[Received]:
        return [span for span in self.spans if span.trace_id.hex() == trace_id]


@dataclass(frozen=True)
class Places:
    """A receiver, and a server for tasks that answers with its own span."""

    receiver: Receiver
    web: Web


@contextmanager
def places() -> Iterator[Places]:
    with closing(Receiver()) as receiver, closing(Web()) as web:
        receiver.pages["/v1/traces"] = {}
        web.headers["/text"] = {"traceresponse": REMOTE}
        yield Places(receiver, web)


def attributes(span: Received) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}
