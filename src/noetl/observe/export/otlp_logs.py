"""Export to a collector of OpenTelemetry, as log records.

They are sent by OTLP over HTTP, in JSON. A batch that may have arrived before is sent again, so a record can be there twice: `event.id` tells. Tested in
tests/unit/observe/export/test_otlp_logs.py.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from noetl import __version__
from noetl.observe.export.target import Exported
from noetl.observe.export.web import Poster

_log = logging.getLogger(__name__)
_PATH = "/v1/logs"
_SEVERITIES = {"FAILED": (17, "ERROR")}
_INFO = (9, "INFO")


class OtlpLogs:
    """Target of an export in a collector."""

    name = "otlp"
    wanted: frozenset[str] | None = None
    every_s = 1.0
    most = 1_000

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self._poster = Poster(url.rstrip("/").removesuffix(_PATH), headers)

    async def prepare(self) -> None:
        return

    async def send(self, batch: Sequence[Exported], begin: str, *, is_repeat: bool) -> None:  # noqa: ARG002  records have ids
        answer = await self._poster.post(_PATH, msgspec.json.encode(request(batch)))
        try:
            partial = msgspec.json.decode(answer or b"{}").get("partialSuccess") or {}
        except (msgspec.DecodeError, AttributeError):
            return  # not every collector answers in JSON
        if int(partial.get("rejectedLogRecords") or 0):
            _log.warning(
                "The collector at %s rejected %s log records: %s",
                self._poster.url, partial["rejectedLogRecords"], partial.get("errorMessage", ""),
            )  # fmt: skip

    async def close(self) -> None:
        await self._poster.close()


def request(batch: Sequence[Exported]) -> dict[str, Any]:
    """Return the body of a request of OTLP."""
    resource = _attributes({"service.name": "noetl", "service.version": __version__})
    scope = {"name": "noetl.events", "version": __version__}
    records = [record(one) for one in batch]
    return {
        "resourceLogs": [{"resource": {"attributes": resource}, "scopeLogs": [{"scope": scope, "logRecords": records}]}]
    }


def record(one: Exported) -> dict[str, Any]:
    """Return an event as a log record."""
    event = one.event
    number, text = _SEVERITIES.get(one.status, _INFO)
    nanoseconds = str(event.timestamp * 1_000_000)
    return {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": number,
        "severityText": text,
        "eventName": event.event_type,
        "body": {"stringValue": one.payload},
        "attributes": _attributes({
            "event.id": event.event_id,
            "event.name": event.event_type,
            "execution_id": event.execution_id,
            "workflow_ref": one.workflow,
            "seq": event.seq,
            "step_id": one.step,
            "step_run_id": event.step_run_id,
            "task": event.entity_id if event.entity_type == "task" else None,
            "loop_index": event.iteration,
            "attempt": event.attempt,
            "status": one.status,
            "duration_ms": event.duration_ms,
            "error_class": one.error_class,
            "error": one.error_message,
        }),
    }  # fmt: skip


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return values as attributes; empty ones are left out."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None and value != ""]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}
