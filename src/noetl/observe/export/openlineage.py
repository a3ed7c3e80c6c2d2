"""Export to OpenLineage: executions as runs, step-runs as their children.

Ids of runs are made of execution id and step-run, so an event that is sent again means the same run. Tested in
tests/unit/observe/export/test_openlineage.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import msgspec

from noetl import __version__
from noetl.observe.export.target import Exported
from noetl.observe.export.web import Poster

_PATH: Final = "/api/v1/lineage"
_PRODUCER: Final = f"noetl/{__version__}"
_SPEC: Final = "https://openlineage.io/spec"
_EVENT: Final = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_ENDS: Final = {"completed": "COMPLETE", "partial": "COMPLETE", "failed": "FAIL", "cancelled": "ABORT"}
_TYPES: Final = {
    "playbook.started": "START",
    "playbook.finished": "COMPLETE",
    "step.started": "START",
    "step.done": "COMPLETE",
    "step.failed": "FAIL",
}


class OpenLineage:
    """Target of an export in an OpenLineage server."""

    name = "openlineage"
    wanted: frozenset[str] | None = frozenset(_TYPES)
    every_s = 1.0
    most = 500

    def __init__(self, url: str, namespace: str = "noetl", headers: Mapping[str, str] | None = None) -> None:
        self._poster = Poster(url.rstrip("/").removesuffix(_PATH), headers)
        self._namespace = namespace

    async def prepare(self) -> None:
        return

    async def send(self, batch: Sequence[Exported], begin: str, *, is_repeat: bool) -> None:  # noqa: ARG002  ids of runs are stable
        """Post one event after the other for each execution; executions side by side."""
        runs: dict[str, list[Exported]] = {}
        for one in batch:
            if one.event.event_type in _TYPES:
                runs.setdefault(one.event.execution_id, []).append(one)
        async with asyncio.TaskGroup() as group:
            for events in runs.values():
                group.create_task(self._post(events))

    async def close(self) -> None:
        await self._poster.close()

    async def _post(self, events: Sequence[Exported]) -> None:
        for one in events:
            await self._poster.post(_PATH, msgspec.json.encode(run_event(one, self._namespace)))


def run_event(one: Exported, namespace: str) -> dict[str, Any]:
    """Return an event of the log as a run event."""
    event = one.event
    kind = _TYPES[event.event_type]
    if event.event_type == "playbook.finished":
        kind = _ENDS.get(str(event.status), kind)
    execution = {"runId": run_id(event.execution_id)}
    whole = {"namespace": namespace, "name": one.workflow}
    facets: dict[str, Any] = {
        "processing_engine": _facet("1-1-1/ProcessingEngineRunFacet", {"name": "NoETL", "version": __version__})
    }
    run, job, sort = execution, whole, "PLAYBOOK"
    if event.step_run_id is not None:
        run = {"runId": run_id(event.execution_id, event.step_run_id)}
        job, sort = {"namespace": namespace, "name": f"{one.workflow}.{one.step}"}, "STEP"
        facets["parent"] = _facet("1-1-0/ParentRunFacet", {"run": execution, "job": whole})
    if kind == "FAIL":
        message = one.error_message or "failed"
        facets["errorMessage"] = _facet(
            "1-0-1/ErrorMessageRunFacet", {"message": message, "programmingLanguage": "YAML"}
        )
    typed = {"processingType": "BATCH", "integration": "NOETL", "jobType": sort}
    return {
        "eventType": kind,
        "eventTime": datetime.fromtimestamp(event.timestamp / 1000, UTC).isoformat(timespec="milliseconds"),
        "run": {**run, "facets": facets},
        "job": {**job, "facets": {"jobType": _facet("2-0-3/JobTypeJobFacet", typed)}},
        "inputs": [],
        "outputs": [],
        "producer": _PRODUCER,
        "schemaURL": _EVENT,
    }


def run_id(execution_id: str, step_run: str = "") -> str:
    """Return the UUID of an execution, or of one of its step-runs."""
    return str(uuid5(NAMESPACE_URL, f"noetl:{execution_id}:{step_run}"))


def _facet(schema: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    name = schema.rpartition("/")[2]
    return {"_producer": _PRODUCER, "_schemaURL": f"{_SPEC}/facets/{schema}.json#/$defs/{name}", **fields}
