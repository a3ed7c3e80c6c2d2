"""Canonical playbooks and their graphs by hash.

Tested in tests/server/api/test_worker.py and test_graph.py.
"""

from __future__ import annotations

import re

from starlette.responses import Response

from noetl.dsl.tree.pin import unpinned
from noetl.server.cache.catalog_lookup import text_of
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal, not_found
from noetl.server.processes.graph import DRAW_GRAPH
from noetl.server.processes.side import OutOfMemory, TimedOut
from noetl.wire.requests import GraphQuery
from noetl.wire.screens.graph import Graph

_HASH = re.compile(r"[0-9a-f]{64}")
noun = Noun("playbooks", "Pinned playbooks by content hash.")


@noun.route("GET", "/api/playbooks/{playbook}", "member", problems=(404,), of="path")
async def canonical(call: Call, playbook: str) -> Response:
    """Return the canonical tree of a content hash; it never changes."""
    return _unchanging(await _found(call, playbook), playbook)


@noun.route("GET", "/api/playbooks/{playbook}/graph", "viewer", problems=(404, 422), of="path", returns=Graph)
async def graph(call: Call, playbook: str, query: GraphQuery) -> Response:
    """Return the steps and arcs of a playbook with their places on a screen."""
    tree = await _found(call, playbook)
    content = await text_of(call.services.store, playbook, unpinned(tree).path, query.version)
    seconds = call.services.bounds.check_s
    try:
        drawn: bytes = await call.services.side.run(DRAW_GRAPH, playbook, tree, content, deadline_s=seconds)
    except (TimedOut, OutOfMemory):
        raise Refusal(
            422,
            "too-complex",
            f"Drawing the playbook takes more than {seconds:g} s of processor time, or too much memory.",
            where="path",
            fix="Split it into smaller playbooks that call each other with `kind: playbook`.",
        ) from None
    return _unchanging(drawn, f"{playbook}-{query.version or 0}")


async def _found(call: Call, playbook: str) -> bytes:
    data = await call.services.store.canonical(playbook) if _HASH.fullmatch(playbook) else None
    if data is not None and call.reach is not None and not call.sees(unpinned(data).path):
        data = None
    if data is None:
        raise not_found(f"No playbook with the content hash {playbook[:80]}.", "GET /api/catalog lists the playbooks.")
    return data


def _unchanging(data: bytes, tag: str) -> Response:
    headers = {"Cache-Control": "private, max-age=31536000, immutable", "ETag": f'"{tag}"'}
    return Response(data, 200, headers, "application/json")
