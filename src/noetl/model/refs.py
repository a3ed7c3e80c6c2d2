"""References to stored results: shape, address, and what is visible.

    {kind: result_ref, ref, store, scope, expires_at, meta: {content_type, bytes, sha256, compression}, keys, extracted, preview}
    {kind: manifest_ref, ref, strategy, merge_path, total, parts: [{ref, count, meta}], store, scope, expires_at, meta, …}

`keys` are the keys of a stored map, so a missing key is known without loading. A manifest is a result in parts. A
pipeline's result may hold references under its labels, and be one itself: then the fields of the reference are beside
`results`. Loads nothing. Tested in tests/unit/model/test_refs.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeGuard
from urllib.parse import quote

KIND: Final = "result_ref"
MANIFEST: Final = "manifest_ref"
STRATEGIES: Final = ("append", "replace", "merge", "concat")
SCOPES: Final = ("step", "execution", "workflow", "permanent")
LISTS: Final = ("append", "concat")  # strategies whose value is a list
SCHEME: Final = "noetl://"
MOST_BYTES: Final = 256 * 1024 * 1024  # default limit of one stored result
MAPS: Final = (dict, Mapping)  # for `isinstance`: `dict` first, because the check of an ABC is slow
SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_KINDS: Final = (KIND, MANIFEST)


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
    if is_ref(parts):
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
