"""Results that were put away: resolved by reference.

Tested in tests/server/test_credentials.py.
"""

from __future__ import annotations

from starlette.responses import Response

from noetl.blobs import stored
from noetl.model.refs import SCHEME
from noetl.server.endpoint import Call, Noun
from noetl.server.problems import Refusal
from noetl.wire.requests import ResultQuery

_PLAIN = "application/octet-stream"
noun = Noun("results", "Large results by reference.")


@noun.route("GET", "/api/results/resolve", "viewer", gives="*/*", problems=(400, 404))
async def resolve(call: Call, query: ResultQuery) -> Response:
    """Give a stored result, whole or some of its bytes."""
    if not query.ref.startswith(SCHEME):
        raise Refusal(422, "invalid-input", f"a reference begins with {SCHEME}", where="query ref")
    async with call.services.resolving:
        data, meta = await stored.get(call.services.blobs, query.ref)
    kind = str(meta.get("content_type", _PLAIN)).partition(";")[0]
    if query.start or query.length is not None:
        end = None if query.length is None else query.start + query.length
        return Response(data[query.start : end], 200, media_type=_PLAIN)
    # What a task produced is data and never a page of this server.
    return Response(data, 200, media_type=kind if kind in ("application/json", "text/plain") else _PLAIN)
