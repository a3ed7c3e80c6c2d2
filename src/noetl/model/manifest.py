"""Results in parts: how a long list is cut, what a manifest says of its parts, and how they become one value again.

    append    the parts, one after the other, as a list
    concat    the lists that the parts are, joined
    merge     the maps that the parts are, merged deeply, the later one over the earlier
    replace   the last part

`merge_path` names where in each part that value is, as dotted keys. Stores nothing. Tested in tests/unit/model/test_manifest.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from noetl.model.errors import BadReference
from noetl.model.refs import LISTS, MANIFEST

PART_BYTES: Final = 256 * 1024  # what one part of a list that was cut has, about
Reference = Mapping[str, Any]


def cut(items: Iterable[Any], most: int = PART_BYTES) -> Iterator[tuple[int, bytes]]:
    """Cut a list into parts of about so many bytes: how many items each has, and what it is as JSON."""
    encode = msgspec.json.encode
    found: list[bytes] = []
    size = 0
    for item in items:
        data = encode(item)
        if found and size + len(data) > most:
            yield len(found), b"[" + b",".join(found) + b"]"
            found, size = [], 0
        found.append(data)
        size += len(data)
    if found:
        yield len(found), b"[" + b",".join(found) + b"]"


def manifest(
    ref: str,
    parts: Sequence[Reference],
    strategy: str = "concat",
    merge_path: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Make the reference of a result in parts; each is {ref, count, meta}."""
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


def is_list(given: Reference) -> bool:
    """Tell whether the whole of a manifest is a list that can be read by range."""
    return given.get("strategy") in LISTS and (given["strategy"] == "append" or not given.get("merge_path"))


def within(given: Reference, start: int, count: int) -> dict[str, Any]:
    """Give a manifest of the parts that hold a range of items; `first` is the index of their first item."""
    at, first, kept = 0, None, []
    for part in given["parts"]:
        held = _count(given, part)
        if at < start + count and at + held > start:
            first = at if first is None else first
            kept.append(part)
        at += held
    return {**given, "parts": kept, "first": first or 0, "total": sum(_count(given, part) for part in kept)}


def _count(given: Reference, part: Reference) -> int:
    return int(part["count"]) if given["strategy"] == "concat" else 1


def combined(given: Reference, values: Sequence[Any]) -> Any:
    """Make one value of the values of all parts; raises BadReference where they do not fit the strategy."""
    strategy, path = given.get("strategy"), given.get("merge_path")
    found = [picked(value, path, str(given.get("ref"))) for value in values] if path else list(values)
    if strategy == "replace":
        return found[-1] if found else None
    if strategy == "append":
        return found
    whole: Any = [] if strategy == "concat" else {}
    for number, value in enumerate(found):
        if strategy == "concat" and isinstance(value, list):
            whole += value
        elif strategy == "merge" and isinstance(value, Mapping):
            whole = _over(whole, value)
        else:
            wanted = "a list" if strategy == "concat" else "a map"
            where = f" at `merge_path: {path}`" if path else ""
            raise BadReference(
                f"the parts of {given.get('ref')} cannot become one by `{strategy}`: part {number} is not {wanted}{where}"
            )
    return whole


def picked(value: Any, path: str, of: str = "the result") -> Any:
    """Give what is in a part where a dotted path says; raises BadReference."""
    for key in path.removeprefix("$").lstrip(".").split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise BadReference(f"a part of {of} has nothing at `merge_path: {path}`")
        value = value[key]
    return value


def _over(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(lower)
    for key, value in upper.items():
        below = made.get(key)
        made[key] = _over(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return made
