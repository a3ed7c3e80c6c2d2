"""Canonical playbooks by hash. Tested in tests/server/api/test_worker.py."""

from __future__ import annotations

import re

from starlette.responses import Response

from noetl.dsl.tree.pin import unpinned
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import not_found

_HASH = re.compile(r"[0-9a-f]{64}")
noun = Noun("playbooks", "Pinned playbooks by content hash.")


@noun.route("GET", "/api/playbooks/{playbook}", "member", problems=(404,), of="path")
async def canonical(call: Call, playbook: str) -> Response:
    """Return the canonical tree of a content hash; it never changes."""
    data = await call.services.store.canonical(playbook) if _HASH.fullmatch(playbook) else None
    if data is not None and call.reach is not None and not call.sees(unpinned(data).path):
        data = None
    if data is None:
        raise not_found(f"No playbook with the content hash {playbook[:80]}.", "GET /api/catalog lists the playbooks.")
    headers = {"Cache-Control": "private, max-age=31536000, immutable", "ETag": f'"{playbook}"'}
    return Response(data, 200, headers, "application/json")
