"""Start executions: by path and version, by content hash, or by text.

A start that is repeated with the same `Idempotency-Key` returns the execution that the first one started: key and execution
id are stored before the start, so a repeated request on any server starts or finds the same execution. Tested in
tests/server/api/test_executions.py.
"""

from __future__ import annotations

from typing import Any

from noetl.server.cache.ids import key_name
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.start_request import start
from noetl.server.problems import Refusal
from noetl.wire.answers import Started
from noetl.wire.older import SeedExecute
from noetl.wire.requests import Execute

_EXAMPLE = {"path": "examples/hello", "payload": {"name": "Ada"}, "tags": ["nightly"], "priority": 5}
_SEED = {"playbook_id": "examples/hello", "parameters": {"name": "Ada"}}
noun = Noun("execute", "Start executions.")


@noun.route(
    "POST",
    "/api/execute",
    "operator",
    status=201,
    act="execution.start",
    example=_EXAMPLE,
    problems=(404, 409, 422, 503),
    of="path",
)
async def execute(call: Call, body: Execute) -> Started:
    """Start an execution; with `wait_ms`, wait for its end."""
    key = call.idempotency_key()
    return await start(call, body, key_name(call.actor.name, key) if key else "")


@noun.route(
    "POST",
    "/api/executions/execute",
    "operator",
    status=201,
    act="execution.start",
    example=_SEED,
    problems=(404, 409, 422, 503),
    of="path",
)
async def execute_named(call: Call, body: SeedExecute) -> Started:
    """Start an execution (older form of the request)."""
    path = body.path or body.playbook_id or body.playbook_path
    if path is None:
        detail = "The request names no playbook."
        raise Refusal(422, "invalid-input", detail, where="$.playbook_id", fix="Send its path.")
    payload = next(
        (one for one in (body.payload, body.parameters, body.input_payload, body.context) if one is not None), {}
    )
    version = None if body.version in (None, "latest") else _version(body.version)
    return await execute(
        call, Execute(path=path, version=version, payload=payload, tags=body.tags, priority=body.priority)
    )


def _version(given: Any) -> int:
    try:
        return max(1, int(given))
    except ValueError:
        detail = f"{given!r} is not a version."
        raise Refusal(422, "invalid-input", detail, where="$.version", fix="Send a number, or `latest`.") from None
