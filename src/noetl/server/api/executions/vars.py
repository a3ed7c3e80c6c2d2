"""The values of `ctx`, and where they come from.

Tested in tests/server/api/test_executions.py.
"""

from __future__ import annotations

from uuid import uuid4

import msgspec

from noetl.engine.queries.history.variables import Variables
from noetl.model.messages import PatchCtx
from noetl.server.http.endpoint import Call, Noun
from noetl.server.operations.forks import submit_with_retry
from noetl.server.problems import not_found
from noetl.wire.answers import Told, Variable, VariableMetadata, Vars
from noetl.wire.requests import CtxPatch, VarsQuery

noun = Noun("vars", "The values of an execution's `ctx`.")


@noun.route("GET", "/api/vars/{execution_id}", "viewer", problems=(404,), of="execution")
async def every(call: Call, execution_id: str, query: VarsQuery) -> Vars:
    """Return the values of an execution."""
    state = await call.services.reader.state(execution_id)
    known = await _metadata(call, execution_id) if query.metadata else {}
    return Vars(execution_id=execution_id, vars=state.ctx, metadata={n: known[n] for n in state.ctx if n in known})


@noun.route("GET", "/api/vars/{execution_id}/{name}", "viewer", problems=(404,), of="execution")
async def one(call: Call, execution_id: str, name: str, query: VarsQuery) -> Variable:
    """Return one value of an execution."""
    state = await call.services.reader.state(execution_id)
    if name not in state.ctx:
        raise not_found(f"Execution {execution_id} has no value `{name}`.", "GET /api/vars/{execution_id} lists them.")
    metadata = (await _metadata(call, execution_id)).get(name) if query.metadata else None
    return Variable(execution_id=execution_id, name=name, value=state.ctx[name], metadata=metadata)


async def _metadata(call: Call, execution_id: str) -> dict[str, VariableMetadata]:
    known = await call.services.collected.get(execution_id, "variables", Variables)
    return {name: msgspec.convert(facts, VariableMetadata, from_attributes=True) for name, facts in known.found.items()}


@noun.route(
    "POST",
    "/api/vars/{execution_id}",
    "editor",
    act="execution.patch",
    example={"writes": {"limit": 10}},
    problems=(404, 503),
    of="execution",
)
async def put(call: Call, execution_id: str, body: CtxPatch) -> Told:
    """Set values of an execution."""
    await call.services.reader.row(execution_id)
    act = call.act(execution_id, keys=sorted(body.writes))
    message = PatchCtx(uuid4().hex, body.writes, call.actor.name)
    row = await submit_with_retry(call.services.control, execution_id, message, act)
    return Told(execution_id=execution_id, status=str(row["status"]), last_seq=row["last_seq"])
