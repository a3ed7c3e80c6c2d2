"""Pages: results of repeated visits, combined by `spec.result.strategy`.

Inline pages together stay below the inline limit; others are references. Tested in tests/unit/engine/pipeline/test_pages.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from noetl.engine.tasks.memory import Held
from noetl.model.manifest import combined, manifest, picked
from noetl.model.refs import compacted

INLINE_MAX_BYTES: Final = 64 * 1024
_TRAVELS: Final = ("kind", "ref", "strategy", "merge_path", "total", "parts", "store", "scope", "expires_at", "meta")
_PREVIEW: Final = 1024
_MOST_KEYS: Final = 200


def room(controls: Any, before: Held | None) -> dict[str, Any]:
    """Return the `result` controls of the next page, with the inline limit left."""
    adjusted: dict[str, Any] = dict(controls) if isinstance(controls, Mapping) else {}
    limit = adjusted.get("inline_max_bytes")
    most = INLINE_MAX_BYTES if limit is None else int(limit)
    parts = before.pages["parts"] if before is not None and before.pages is not None else ()
    adjusted["inline_max_bytes"] = max(0, most - sum(part["meta"]["bytes"] for part in parts if "value" in part))
    return adjusted


def added(before: Held | None, page: Any, stored: Mapping[str, Any] | None, how: tuple[str, str | None]) -> Held:
    """Return the result of a task after one more page. Raises BadReference."""
    earlier = before.pages if before is not None else None
    parts = list(earlier["parts"]) if earlier is not None and how[0] != "replace" else []
    own = picked(page, how[1]) if how[1] else page
    count = len(own) if how[0] == "concat" and isinstance(own, list) else 1
    if stored is None:
        kept = compacted(page)
        parts.append({"value": kept, "count": count, "meta": {"bytes": len(msgspec.json.encode(kept))}})
    else:
        parts.append({**{name: stored[name] for name in _TRAVELS if name in stored}, "count": count})
    whole = before.value if before is not None and earlier is not None else None
    description = {"ref": "the result", "strategy": how[0]}
    if how[0] == "append":
        value: Any = [*(whole or ()), own]
    else:  # the earlier pages are not combined again
        value = combined(description, [own] if whole is None else [whole, own])
    pages = manifest(_address(parts), parts, *how, **_about(earlier, parts, page, stored))
    if isinstance(value, Mapping) and len(value) <= _MOST_KEYS:
        pages["keys"] = [str(key) for key in value]
    return Held(value, pages=pages)


def _about(
    earlier: Mapping[str, Any] | None, parts: list[Mapping[str, Any]], page: Any, stored: Mapping[str, Any] | None
) -> dict[str, Any]:
    stored_parts = [part for part in parts if "ref" in part]
    ends = [part["expires_at"] for part in stored_parts if part.get("expires_at") is not None]
    if earlier is not None and earlier["strategy"] != "replace":
        preview = earlier["preview"]
    else:
        preview = (stored or {}).get("preview") or msgspec.json.encode(page)[:_PREVIEW].decode(errors="ignore")
    return {
        "store": stored_parts[-1].get("store") if stored_parts else "inline",
        "scope": stored_parts[-1].get("scope") if stored_parts else "execution",
        "expires_at": min(ends) if ends else None,
        "extracted": {},
        "preview": preview,
    }


def _address(parts: list[Mapping[str, Any]]) -> str:
    """Return the address of the pages so far, unique to their number."""
    last = next((part["ref"] for part in reversed(parts) if "ref" in part), "noetl://inline")
    return f"{last}/pages/{len(parts)}"
