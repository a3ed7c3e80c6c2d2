"""Read and write the value of a reference: one blob, or a manifest of parts.

Every blob and part is verified by its hash. A range of a list is read from the parts that hold it. Works on any blob
store. Tested in tests/unit/blobs/test_manifests.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from noetl.blobs import pieces, stored
from noetl.engine.queries.result_gc import moment
from noetl.model.errors import BadReference
from noetl.model.manifest import combined, cut, manifest, ranged, within
from noetl.model.refs import is_manifest, is_ref, size
from noetl.ports import Blobs

DATABASE_MAX_BYTES: Final = 1024 * 1024  # up to this size `auto` uses the store itself
MANIFEST_TYPE: Final = "application/vnd.noetl.manifest+json"
_RECENT: Final = 4  # decoded parts in the cache: the next range is mostly in the same part
Reference = Mapping[str, Any]


def shelf(kind: str, bytes: int) -> str:
    """Return the blob store for a number of bytes; `auto` depends on the size."""
    if kind == "kv":  # a key-value store of NATS is not built yet
        return "db"
    return kind if kind != "auto" else "db" if bytes <= DATABASE_MAX_BYTES else "file"


async def value(blobs: Blobs, reference: Reference, now: int) -> Any:
    """Load the value of a reference. Raises BadReference, also if it has expired."""
    check(reference, now)
    if not is_manifest(reference):
        return await stored.value(blobs, reference["ref"], reference.get("meta"))
    if reference.get("strategy") == "replace":
        reference = {**reference, "parts": reference["parts"][-1:]}
    values = [part["value"] if "value" in part else await value(blobs, _part(part), now) for part in reference["parts"]]
    return await filled(blobs, combined(reference, values), now)


async def at(blobs: Blobs, ref: str, now: int) -> Any:
    """Load the value under an address. Raises BadReference, also if it has expired."""
    found = await stored.value(blobs, ref)
    about = await blobs.about(ref)
    check({**about, "ref": ref}, now)
    return await value(blobs, found, now) if about.get("content_type") == MANIFEST_TYPE else found


async def put_manifest(blobs: Blobs, made: Reference, now: int) -> None:
    """Store a manifest under its own address, for readers that have only the address."""
    terms = stored.terms(made.get("scope"), made.get("expires_at"), now)
    await stored.put(blobs, str(made["ref"]), await pieces.encoded(made), "db", MANIFEST_TYPE, "none", terms)


async def items(
    blobs: Blobs, reference: Reference, start: int, count: int, now: int, recent: dict[str, Any] | None = None
) -> list[Any]:
    """Load a range of a list from its parts; `recent` caches decoded parts."""
    check(reference, now)
    near = within(reference, start, count) if "first" not in reference else reference
    recent = {} if recent is None else recent
    values = []
    for part in near["parts"]:
        if "value" in part:
            values.append(part["value"])
            continue
        found = recent.get(part["ref"])
        if found is None:
            found = recent[part["ref"]] = await value(blobs, _part(part), now)
            for oldest in list(recent)[:-_RECENT]:
                recent.pop(oldest, None)
        values.append(found)
    offset = start - near["first"]
    found_items = ranged(near, values, offset, count)
    if len(found_items) < count:
        raise BadReference(f"the list {reference['ref']} ends before item {start + count - 1}")
    whole: list[Any] = await filled(blobs, found_items, now)
    return whole


async def filled(blobs: Blobs, found: Any, now: int) -> Any:
    """Load the items of a list that were stored separately."""
    if not isinstance(found, list) or not any(map(is_ref, found)):
        return found
    return [await value(blobs, item, now) if is_ref(item) else item for item in found]


async def put_list(blobs: Blobs, ref: str, listed: Sequence[Any], now: int, kind: str = "auto") -> dict[str, Any]:
    """Store a list in parts and return its manifest."""
    terms = stored.terms("execution", None, now)
    parts = []
    store = "db"
    for number, (count, data) in enumerate(cut(listed)):
        address = f"{ref}/part/{number}"
        store = shelf(kind, len(data))
        meta = await stored.put(blobs, address, data, store, stored.JSON, "none", terms)
        parts.append({"ref": address, "count": count, "meta": meta})
    return manifest(ref, parts, store=store, scope="execution", expires_at=None)


def check(reference: Reference, now: int) -> None:
    """Raise BadReference if a reference has expired."""
    expires = reference.get("expires_at")
    if isinstance(expires, int) and expires <= now:
        raise BadReference(
            f"the stored result {reference.get('ref')} has expired: its `ttl` ended at {moment(expires)}"
        )


def refuse_larger(reference: Reference, most: int) -> None:
    """Raise BadReference if a result is too large to be loaded."""
    if size(reference) > most:
        raise BadReference(
            f"the stored result {reference.get('ref')} has {size(reference):,} bytes, and a condition, a `set` or `loop.in` "
            f"reads at most {most:,}; read it in a task, keep the part that is read with `select`, or loop over the list itself"
        )


def _part(part: Reference) -> Reference:
    return {"kind": "result_ref", **part}
