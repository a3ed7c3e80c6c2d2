"""Playbooks by path and version. Tested in tests/server/api/test_catalog.py."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec
from msgspec.structs import asdict

from noetl.engine.queries.view import changed
from noetl.model.errors import InvalidInput
from noetl.ports import Selection
from noetl.server.api.triggers.verbs import find_playbook
from noetl.server.auth.gate import refusal
from noetl.server.cache.catalog_lookup import similar_path
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.playbook_check import check_playbook
from noetl.server.operations import schedules, triggers
from noetl.server.problems import Refusal, not_found
from noetl.server.processes.difference import difference
from noetl.wire.answers import (
    CatalogEntry,
    CatalogPage,
    CatalogVersion,
    Difference,
    RecentExecution,
    Registered,
    Removed,
    UiSchema,
    Versions,
)
from noetl.wire.requests import TRIAL, CatalogQuery, DiffQuery, PlaybookQuery, Registration

_HELLO = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: hello, path: examples/hello}
workflow:
  - step: hello
    tool: {kind: noop, result: hello}
"""
_MOST_RECENT = 100  # paths on a page with their last executions


class _Triggers(TypedDict, total=False):
    """What the server itself does for a playbook; the rest of its tree is not decoded."""

    triggers: list[dict[str, Any]]
    notifications: list[dict[str, Any]]


_log = logging.getLogger(__name__)
_triggers = msgspec.json.Decoder(_Triggers).decode
noun = Noun("catalog", "Playbooks by path and version.")


@noun.route(
    "POST",
    "/api/catalog",
    "editor",
    status=201,
    act="playbook.register",
    example={"content": _HELLO},
    problems=(409, 413, 422),
    of="path",
)
async def register(call: Call, body: Registration) -> Registered:
    """Validate a playbook and register it; the same text twice is one version.

    With `expected`, a version that the caller has not seen is a conflict.
    """
    made = await check_playbook(call.services, body.content, tolerant=body.tolerant)
    if body.path is not None and body.path != made.path:
        raise Refusal(
            409,
            "conflict",
            f"`path` differs from the playbook's `metadata.path: {made.path}`.",
            where="$.path",
            fix="Omit `path`, or make both the same.",
        )
    if not call.sees(made.path):
        raise refusal(call.actor, "editor")
    act, now, version = call.act(made.path, playbook=made.playbook), call.services.clock.now(), 0
    if not body.check_only:
        await _check_triggers(call, made.path, made.canonical)
        parts = (made.path, made.content, made.canonical, made.playbook)
        version = await call.services.store.register(*parts, now, act, body.expected)
        await _follow(call, made.path)
    return Registered(path=made.path, version=version, playbook=made.playbook, diagnostics=made.diagnostics)


@noun.route("GET", "/api/catalog", "viewer", of="path")
async def listed(call: Call, query: CatalogQuery) -> CatalogPage:
    """List the paths of the catalog with their latest versions."""
    limit = min(query.limit, _MOST_RECENT) if query.recent else query.limit
    found = await call.services.abouts.entries(
        call.services.store, query.cursor, limit, call.reach, text=query.search, tag=query.tag, label=query.label
    )
    entries = [
        msgspec.convert(
            {**row, **asdict(about), "recent": await _recent(call, str(row["path"]), query.recent)},
            CatalogEntry,
            strict=False,
        )
        for row, about in found
    ]
    return CatalogPage(playbooks=entries, next=entries[-1].path if len(entries) == limit else None)


async def _recent(call: Call, path: str, most: int) -> list[RecentExecution]:
    if not most:
        return []
    rows = await call.services.store.executions(Selection(path=path, without=TRIAL, limit=most))
    fields = RecentExecution.__struct_fields__
    return [RecentExecution(**{name: row[name] for name in fields if name in row}) for row in rows]


@noun.route("GET", "/api/catalog/playbook", "viewer", problems=(404,), is_plain=True, of="path")
async def one(call: Call, query: PlaybookQuery) -> CatalogVersion:
    """Return a version of a playbook with its text."""
    return _version(await _found(call, query.path, query.version))


@noun.route("GET", "/api/catalog/versions", "viewer", problems=(404,), of="path")
async def versions(call: Call, query: PlaybookQuery) -> Versions:
    """List the versions of a path, the newest first."""
    rows = await call.services.store.versions(query.path) if call.sees(query.path) else []
    if not rows:
        raise _missing(query.path, None)
    return Versions(path=query.path, versions=[CatalogVersion(**row) for row in rows])


@noun.route("GET", "/api/catalog/diff", "viewer", problems=(404,), is_plain=True, of="path")
async def diff(call: Call, query: DiffQuery) -> Difference:
    """Return the changes between two versions; default: the last two."""
    new = await _found(call, query.path, query.version)
    since = query.since or max(1, int(new["version"]) - 1)
    old = await _found(call, query.path, since)
    names = (f"{query.path}@{since}", f"{query.path}@{new['version']}")
    texts, services = (bytes(old["content"]), bytes(new["content"])), call.services
    text = await difference(services.side, *texts, names, services.bounds.check_s)
    text = "The texts are too long to be compared.\n" if text is None else text
    trees = [msgspec.json.decode(await _canonical(call, row)) for row in (old, new)]
    return Difference(
        path=query.path, since=since, version=int(new["version"]), text=text, changes=list(changed(*trees))
    )


@noun.route("GET", "/api/catalog/ui_schema", "viewer", problems=(404,), of="path")
async def ui_schema(call: Call, query: PlaybookQuery) -> UiSchema:
    """Return the JSON Schema and the defaults for a form that starts a playbook."""
    row = await _found(call, query.path, query.version)
    playbook = (await call.services.control.plan(str(row["playbook"]))).playbook
    # A form would send a masked default back, so those under the name of a secret are left out.
    hides = call.services.mask.hides
    defaults = {name: value.data for name, value in playbook.workload.items() if not hides(name)}
    given = playbook.executor.setting("workload_schema")
    schema = dict(given) if isinstance(given, Mapping) else {"type": "object"}
    known = schema.get("properties")
    properties = dict(known) if isinstance(known, Mapping) else {}
    for name, value in defaults.items():
        properties.setdefault(name, {**_shape(value), "default": value, "title": name})
    schema["properties"] = properties
    return UiSchema(path=query.path, version=int(row["version"]), schema=schema, defaults=defaults)


@noun.route("DELETE", "/api/catalog", "editor", act="playbook.delete", problems=(404,), of="path")
async def remove(call: Call, query: PlaybookQuery) -> Removed:
    """Remove a version, or all versions of a path; running executions continue."""
    if not call.sees(query.path):
        raise _missing(query.path, query.version)
    act = call.act(query.path, version=query.version)
    removed = await call.services.store.unregister(query.path, query.version, act)
    if not removed:
        raise _missing(query.path, query.version)
    await _follow(call, query.path)
    return Removed(removed=removed)


async def _check_triggers(call: Call, path: str, canonical: bytes) -> None:
    """Check that triggers can be made, and that the caller sees what they start.

    A version is stored only then, so it never lacks its triggers. Raises Refusal.
    """
    try:
        tree = _triggers(canonical)
        _check_own(path, tree)
    except (InvalidInput, msgspec.ValidationError) as error:
        detail = f"A trigger of the playbook cannot be made: {error} Nothing was stored."
        raise Refusal(422, "invalid-input", detail, where="$.content", fix="Correct the trigger.") from None
    for one in tree.get("triggers", ()):
        if "dispatch" in one:
            await find_playbook(call, one["dispatch"]["playbook"], one["dispatch"].get("version"))


def _check_own(path: str, tree: _Triggers) -> None:
    """Check that the triggers of a path can be made. Raises InvalidInput."""
    schedules.wanted_schedules(path, tree.get("triggers", ()))
    triggers.wanted_triggers(path, tree)


async def _follow(call: Call, path: str) -> None:
    """Make the triggers of a path those of its latest version."""
    latest = await call.services.store.find(path, None)
    tree = _triggers(await _canonical(call, latest)) if latest is not None else _Triggers()
    try:
        _check_own(path, tree)
    except InvalidInput as error:  # a version of before, which is the latest again
        _log.error("The triggers of %s are removed: %s", path, error)
        tree = _Triggers()
    now = call.services.clock.civil()
    given, by = tree.get("triggers", ()), call.actor.name
    await schedules.follow_playbook(call.services.schedules, path, given, by, now)
    await triggers.follow_playbook(call.services.triggers, path, tree, by, now)


async def _found(call: Call, path: str, version: int | None) -> Mapping[str, Any]:
    found = await call.services.store.find(path, version) if call.sees(path) else None
    if found is None:
        raise _missing(path, version, await similar_path(call.services.store, path, call.reach))
    return found


async def _canonical(call: Call, row: Mapping[str, Any]) -> bytes:
    return await call.services.store.canonical(str(row["playbook"])) or b"{}"


def _missing(path: str, version: int | None, near: str = "") -> Refusal:
    which = f"`{path}`" if version is None else f"version {version} of `{path}`"
    return not_found(f"The catalog has no {which}.{near}", "GET /api/catalog lists the playbooks.")


def _text(row: Mapping[str, Any]) -> str:
    return bytes(row["content"]).decode("utf-8", "replace")


def _version(row: Mapping[str, Any]) -> CatalogVersion:
    return CatalogVersion(
        path=str(row["path"]),
        version=int(row["version"]),
        playbook=str(row["playbook"]),
        registered_at=int(row["registered_at"]),
        content=_text(row),
    )


def _shape(value: Any) -> dict[str, Any]:
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (list, "array"),
        (dict, "object"),
    )
    found = next((name for kind, name in kinds if isinstance(value, kind)), None)
    if found is None and isinstance(value, str) and "{{" not in value:
        found = "string"
    return {} if found is None else {"type": found}
