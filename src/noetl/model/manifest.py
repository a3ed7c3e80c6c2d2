"""Results in parts: cutting a list, its manifest, combining the parts.

    append    a list of the parts
    concat    the parts, which are lists, concatenated
    merge     the parts, which are maps, merged deeply; later parts win
    replace   the last part

`merge_path` is the dotted path of that value in each part. Stores nothing. Tested in tests/unit/model/test_manifest.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from noetl.model.errors import BadReference
from noetl.model.refs import LISTS, MANIFEST, expanded

PART_BYTES: Final = 256 * 1024  # approximate size of one part of a list
Reference = Mapping[str, Any]


def cut(items: Iterable[Any], most: int = PART_BYTES) -> Iterator[tuple[int, bytes]]:
    """Cut a list into parts; yield the item count and JSON of each."""
    encode = msgspec.json.encode
    encoded: list[bytes] = []
    size = 0
    for item in items:
        data = encode(item)
        if encoded and size + len(data) > most:
            yield len(encoded), b"[" + b",".join(encoded) + b"]"
            encoded, size = [], 0
        encoded.append(data)
        size += len(data)
    if encoded:
        yield len(encoded), b"[" + b",".join(encoded) + b"]"


def manifest(
    ref: str,
    parts: Sequence[Reference],
    strategy: str = "concat",
    merge_path: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the reference of a result in parts; each part is {ref, count, meta}."""
    counted = sum(int(part.get("count", 1)) for part in parts)
    return {
        "kind": MANIFEST,
        "ref": ref,
        "strategy": strategy,
        "merge_path": merge_path,
        "total": counted if strategy == "concat" else len(parts) if strategy == "append" else 1,
        "parts": [dict(part) for part in parts],
        "meta": {
            "content_type": "application/json",
            "bytes": sum(int((part.get("meta") or {}).get("bytes") or 0) for part in parts),
        },
        **more,
    }


def is_list(reference: Reference) -> bool:
    """Return whether the value of a manifest is a list that can be read by range."""
    return reference.get("strategy") in LISTS and (reference["strategy"] == "append" or not reference.get("merge_path"))


def within(reference: Reference, start: int, count: int) -> dict[str, Any]:
    """Return a manifest of the parts with a range of items, from index `first` on."""
    at, first, parts = 0, None, []
    for part in reference["parts"]:
        held = _count(reference, part)
        if at < start + count and at + held > start:
            first = at if first is None else first
            parts.append(part)
        at += held
    return {**reference, "parts": parts, "first": first or 0, "total": sum(_count(reference, part) for part in parts)}


def _count(reference: Reference, part: Reference) -> int:
    return int(part["count"]) if reference["strategy"] == "concat" else 1


def combined(reference: Reference, values: Sequence[Any]) -> Any:
    """Combine the values of all parts. Raises BadReference."""
    strategy, path = reference.get("strategy"), reference.get("merge_path")
    picked_values = [expanded(value) for value in values]
    if path:
        picked_values = [picked(value, path, str(reference.get("ref"))) for value in picked_values]
    if strategy == "replace":
        return picked_values[-1] if picked_values else None
    if strategy == "append":
        return picked_values
    whole: Any = [] if strategy == "concat" else {}
    for number, value in enumerate(picked_values):
        if strategy == "concat" and isinstance(value, list):
            whole += map(expanded, value)
        elif strategy == "merge" and isinstance(value, Mapping):
            whole = _over(whole, value)
        else:
            wanted = "a list" if strategy == "concat" else "a map"
            where = f" at `merge_path: {path}`" if path else ""
            raise BadReference(
                f"the parts of {reference.get('ref')} cannot become one by `{strategy}`: part {number} is not {wanted}{where}"
            )
    return whole


def ranged(reference: Reference, values: Sequence[Any], offset: int, count: int) -> list[Any]:
    """Return a range of the list that parts become. Raises BadReference.

    Of a long part, only the items of the range are expanded: loops read it once for each of their chunks.
    """
    plain = reference.get("strategy") == "concat" and not reference.get("merge_path")
    if not plain or not all(isinstance(value, list) for value in values):
        whole: list[Any] = combined(reference, values)[offset : offset + count]
        return whole
    found: list[Any] = []
    for value in values:
        found += map(expanded, value[offset : offset + count - len(found)])
        offset = max(0, offset - len(value))
    return found


def picked(value: Any, path: str, of: str = "the result") -> Any:
    """Return the value at a dotted path of a part. Raises BadReference."""
    for key in path.removeprefix("$").lstrip(".").split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise BadReference(f"a part of {of} has nothing at `merge_path: {path}`")
        value = value[key]
    return value


def _over(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        merged[key] = _over(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged
