"""Stored results by reference. Tested in tests/server/auth/test_vault.py."""

from __future__ import annotations

from starlette.responses import Response

from noetl.blobs import stored
from noetl.model.refs import SCHEME
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal
from noetl.wire.requests import ResultQuery

_PLAIN = "application/octet-stream"
noun = Noun("results", "Large results by reference.")


@noun.route("GET", "/api/results/resolve", "viewer", gives="*/*", problems=(400, 404))
async def resolve(call: Call, query: ResultQuery) -> Response:
    """Return a stored result, or a range of its bytes."""
    if not query.ref.startswith(SCHEME):
        detail = f"A reference must begin with {SCHEME}."
        raise Refusal(422, "invalid-input", detail, where="query ref", fix="Send the reference of a stored result.")
    async with call.services.resolving:
        data, meta = await stored.get(call.services.blobs, query.ref)
    kind = str(meta.get("content_type", _PLAIN)).partition(";")[0]
    if query.start or query.length is not None:
        end = None if query.length is None else query.start + query.length
        return Response(data[query.start : end], 200, media_type=_PLAIN)
    # The output of a task must never be served as a page of this server.
    return Response(data, 200, media_type=kind if kind in ("application/json", "text/plain") else _PLAIN)
