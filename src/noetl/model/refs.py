"""Forms in which results are kept: references, compact results, and their views.

    {kind: result_ref, ref, store, scope, expires_at, meta: {content_type, bytes, sha256, compression}, keys, extracted, preview}
    {kind: manifest_ref, ref, strategy, merge_path, total, parts: [{ref, count, meta}], store, scope, expires_at, meta, …}

`keys` are the keys of a stored map, so a missing key is known without loading. A manifest is a result in parts. A
pipeline's result may hold references under its labels, and be one itself: then the fields of the reference are beside
`results`.

    {kind: compact_result, results: {<label>: …}, last: <label>}    of a pipeline; `own` instead of `last`: a value that no label has
    {kind: compact_result, value: {…}, also: {body: data}}          of a task; `body` is the same value as `data`

Events and states hold a compact result, so each value is there once; `expanded` returns the data that readers see, in
which the same value stands under several names. Loads nothing. Tested in tests/unit/model/test_refs.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeGuard
from urllib.parse import quote

KIND: Final = "result_ref"
MANIFEST: Final = "manifest_ref"
COMPACT: Final = "compact_result"
STRATEGIES: Final = ("append", "replace", "merge", "concat")
SCOPES: Final = ("step", "execution", "workflow", "permanent")
LISTS: Final = ("append", "concat")  # strategies whose value is a list
SCHEME: Final = "noetl://"
MOST_BYTES: Final = 256 * 1024 * 1024  # default limit of one stored result
MAPS: Final = (dict, Mapping)  # for `isinstance`: `dict` first, because the check of an ABC is slow
SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_KINDS: Final = (KIND, MANIFEST)
_MOST_NAMES: Final = 50  # a map with more is data, and is not searched for a value under two names
_SHORT: Final = 64  # characters of a text that may stand twice


def is_ref(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a value is a reference, alone or beside labels."""
    if type(value) in SCALARS or not isinstance(value, MAPS):
        return False
    return value.get("kind") in _KINDS and str(value.get("ref")).startswith(SCHEME)


def is_manifest(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a value is a reference to a result in parts."""
    return is_ref(value) and value["kind"] == MANIFEST


def size(reference: Mapping[str, Any]) -> int:
    """Return the size of a stored result in bytes."""
    return int((reference.get("meta") or {}).get("bytes") or 0)


def holds_ref(value: Any) -> bool:
    """Return whether a step's result is or contains a reference."""
    if is_ref(value):
        return True
    parts = value.get("results") if isinstance(value, Mapping) else None
    if is_ref(parts) or (isinstance(value, MAPS) and value.get("kind") == COMPACT and holds_ref(value.get("own"))):
        return True
    return isinstance(parts, Mapping | list) and any(
        holds_ref(part) for part in (parts.values() if isinstance(parts, Mapping) else parts)
    )


def address(
    execution_id: str,
    step: str,
    task: str,
    run: int,
    attempt: int,
    *,
    index: int | None = None,
    visit: int = 1,
    delivery: int = 1,
) -> str:
    """Return the address of a task's result, another one for each delivery."""
    which = f"{run}" + ("" if index is None else f".{index}")
    name = quote(task, safe="") + ("" if visit == 1 else f".{visit}")
    again = "" if delivery == 1 else f"/delivery/{delivery}"
    return (
        f"{SCHEME}execution/{execution_id}/step/{quote(step, safe='')}/task/{name}/run/{which}/attempt/{attempt}{again}"
    )


def beside(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a pipeline's result holds beside its reference."""
    labels = result.get("results")
    return {**labels, "results": labels} if isinstance(labels, Mapping) else {}


def visible(result: Any) -> Any:
    """Return what is visible of a result without loading it."""
    if is_ref(result):
        shown = {"_ref": result["ref"], "_store": result.get("store"), **(result.get("extracted") or {})}
        return {**_labels(beside(result)), **shown}
    if isinstance(result, Mapping) and isinstance(result.get("results"), Mapping) and not is_ref(result["results"]):
        return _labels(result)
    return result


def _labels(result: Mapping[str, Any]) -> dict[str, Any]:
    data = {name: visible(value) if is_ref(value) else value for name, value in result.items()}
    labels = data.get("results")
    if isinstance(labels, Mapping):
        data["results"] = {name: visible(value) if is_ref(value) else value for name, value in labels.items()}
    return data


def compact_pipeline(results: Mapping[str, Any], last: str | None, own: Any = None) -> dict[str, Any]:
    """Return a pipeline's result; `last` is the label whose keys it has, else `own`."""
    return {"kind": COMPACT, "results": results, **({"own": own} if last is None else {"last": last})}


def compacted(value: Any) -> Any:
    """Return a task's result with each value once; `expanded` gives it back exactly."""
    if type(value) in SCALARS or not isinstance(value, MAPS):
        return value
    also = same_values(value)
    if not also:  # a map that only looks like a compact result must come back as it is
        return value if expanded(value) is value else {"kind": COMPACT, "value": value, "also": {}}
    return {"kind": COMPACT, "value": {name: item for name, item in value.items() if name not in also}, "also": also}


def same_values(value: Any) -> dict[str, str]:
    """Return the names of a map whose value is the very object of an earlier name."""
    if not isinstance(value, MAPS) or len(value) > _MOST_NAMES:
        return {}
    first: dict[int, str] = {}
    also: dict[str, str] = {}
    for name, item in value.items():
        is_long = len(item) > _SHORT if isinstance(item, str) else isinstance(item, dict | list) and bool(item)
        if is_long and first.setdefault(id(item), name) != name:
            also[name] = first[id(item)]
    return also


def expanded(result: Any) -> Any:
    """Return a result as plain data: nothing is copied, views share their values."""
    if type(result) in SCALARS or not isinstance(result, MAPS):
        return result
    if result.get("kind") == COMPACT:
        return _views(result)
    items = result.get("results")
    if isinstance(items, list) and any(isinstance(item, MAPS) and item.get("kind") == COMPACT for item in items):
        return {**result, "results": [expanded(item) for item in items]}  # of a loop
    return result


def _views(result: Mapping[str, Any]) -> Any:
    value, also, results = result.get("value"), result.get("also"), result.get("results")
    if isinstance(value, Mapping) and isinstance(also, Mapping):
        return with_views(value, also)
    if not isinstance(results, Mapping):
        return result
    labels = {label: expanded(part) for label, part in results.items()}
    own = labels.get(result["last"]) if "last" in result else expanded(result.get("own"))
    return {**labels, "results": labels, **(own if isinstance(own, Mapping) else {"data": own})}


def with_views(value: Any, also: Mapping[str, Any]) -> Any:
    """Return a map whose values also stand under the names in `also`."""
    if not also or not isinstance(value, Mapping):
        return value
    return {**value, **{name: value.get(key) for name, key in also.items()}}
