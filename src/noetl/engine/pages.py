"""Pages: what a task gives that is come to again by a jump, and says under `spec.result.strategy` how they become one.

The pages that were put away are remembered by their references, the others as they are; so a pipeline that goes on elsewhere
goes on with all of them. Together, pages that are not put away stay below what may travel inline. Stores nothing. Tested in
tests/unit/engine/test_pages.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from noetl.engine.memory import Held
from noetl.model.manifest import combined, manifest, picked

INLINE_MAX_BYTES: Final = 64 * 1024
_TRAVELS: Final = ("kind", "ref", "strategy", "merge_path", "total", "parts", "store", "scope", "expires_at", "meta")
_PREVIEW: Final = 1024
_MOST_KEYS: Final = 200


def room(controls: Any, before: Held | None) -> dict[str, Any]:
    """Give the controls of the next page: it travels inline as far as the pages before it left room."""
    found: dict[str, Any] = dict(controls) if isinstance(controls, Mapping) else {}
    given = found.get("inline_max_bytes")
    most = INLINE_MAX_BYTES if given is None else int(given)
    parts = before.pages["parts"] if before is not None and before.pages is not None else ()
    found["inline_max_bytes"] = max(0, most - sum(part["meta"]["bytes"] for part in parts if "value" in part))
    return found


def added(before: Held | None, page: Any, stored: Mapping[str, Any] | None, how: tuple[str, str | None]) -> Held:
    """Give what a task has after one more page; raises BadReference where the page does not fit."""
    known = before.pages if before is not None else None
    parts = list(known["parts"]) if known is not None and how[0] != "replace" else []
    own = picked(page, how[1]) if how[1] else page
    count = len(own) if how[0] == "concat" and isinstance(own, list) else 1
    if stored is None:
        parts.append({"value": page, "count": count, "meta": {"bytes": len(msgspec.json.encode(page))}})
    else:
        parts.append({**{name: stored[name] for name in _TRAVELS if name in stored}, "count": count})
    whole = before.value if before is not None and known is not None else None
    short = {"ref": "the result", "strategy": how[0]}
    if how[0] == "append":
        value: Any = [*(whole or ()), own]
    else:  # what was made of the earlier pages is not made again
        value = combined(short, [own] if whole is None else [whole, own])
    made = manifest(_address(parts), parts, *how, **_about(known, parts, page, stored))
    if isinstance(value, Mapping) and len(value) <= _MOST_KEYS:
        made["keys"] = [str(key) for key in value]
    return Held(value, pages=made)


def _about(
    known: Mapping[str, Any] | None, parts: list[Mapping[str, Any]], page: Any, stored: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Give what is told of all pages: where the last was put, when the first of them goes, and how they begin."""
    away = [part for part in parts if "ref" in part]
    ends = [part["expires_at"] for part in away if part.get("expires_at") is not None]
    if known is not None and known["strategy"] != "replace":
        preview = known["preview"]
    else:
        preview = (stored or {}).get("preview") or msgspec.json.encode(page)[:_PREVIEW].decode(errors="ignore")
    return {
        "store": away[-1].get("store") if away else "inline",
        "scope": away[-1].get("scope") if away else "execution",
        "expires_at": min(ends) if ends else None,
        "extracted": {},
        "preview": preview,
    }


def _address(parts: list[Mapping[str, Any]]) -> str:
    """Give the address of the pages so far, which no other state of them has."""
    last = next((part["ref"] for part in reversed(parts) if "ref" in part), "noetl://inline")
    return f"{last}/pages/{len(parts)}"
