"""Keychains of playbooks, never data. Tested in tests/server/auth/test_vault.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.dsl.tree.playbook import Keychain
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal, not_found
from noetl.wire.answers import KeychainEntries, KeychainEntry
from noetl.wire.requests import KeychainQuery

_SOURCES = ("credential", "auth")
noun = Noun("keychain", "Credentials that a playbook declares.")


@noun.route("GET", "/api/keychain", "viewer", problems=(404,), of="path")
async def listed(call: Call, query: KeychainQuery) -> KeychainEntries:
    """List the keychain entries of an execution or a playbook."""
    path, playbook = await _meant(call, query)
    plan = await call.services.control.plan(playbook)
    stored = {str(row["name"]): row for row in await call.services.team.credentials()}
    entries = [_entry(one, stored) for one in plan.playbook.keychain]
    return KeychainEntries(path=path, playbook=playbook, entries=entries)


@noun.route("GET", "/api/keychain/{execution_id}", "viewer", problems=(404,), of="execution")
async def of_execution(call: Call, execution_id: str) -> KeychainEntries:
    """List the entries of an execution."""
    return await listed(call, KeychainQuery(execution_id=execution_id))


async def _meant(call: Call, query: KeychainQuery) -> tuple[str, str]:
    if (query.execution_id is None) == (query.path is None):
        detail = "The request must name either an execution or a playbook."
        raise Refusal(422, "invalid-input", detail, where="query", fix="Send `execution_id` or `path`.")
    if query.execution_id is not None:
        await call.find_execution(query.execution_id)
        state = await call.services.reader.state(query.execution_id)
        return state.path, state.playbook
    path = str(query.path)
    row = await call.services.store.find(path, query.version) if call.sees(path) else None
    if row is None:
        raise not_found(f"The catalog has no `{query.path}` of that version.", "GET /api/catalog lists the playbooks.")
    return str(row["path"]), str(row["playbook"])


def _entry(declared: Keychain, stored: Mapping[str, Mapping[str, Any]]) -> KeychainEntry:
    fields = {key: value.data for key, value in declared.fields.items()}
    source = next((fields[key] for key in _SOURCES if isinstance(fields.get(key), str)), declared.name)
    behind = stored.get(source)
    about = behind.get("about", {}) if behind is not None else {}
    expires = about.get("expires_at") if isinstance(about, Mapping) else None
    kind = fields.get("kind") or (behind or {}).get("kind")
    return KeychainEntry(
        name=declared.name,
        kind=str(kind) if kind is not None else None,
        credential=source,
        stored=behind is not None,
        version=int(behind["version"]) if behind is not None else None,
        updated_at=int(behind["updated_at"]) if behind is not None else None,
        expires_at=expires if isinstance(expires, int) else None,
        ttl_seconds=fields["ttl_seconds"] if isinstance(fields.get("ttl_seconds"), int | float) else None,
        fields=sorted(fields.keys() - {"name", "kind", *_SOURCES}),
    )
