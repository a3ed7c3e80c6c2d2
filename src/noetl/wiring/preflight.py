"""Find the credentials that a playbook surely needs and that are not stored.

Only names that are written out are looked for: a template may yield any name. An entry of `keychain` counts when a task
names it or a template reads it. Tested in tests/unit/wiring/test_preflight.py and tests/acceptance/executions/test_run.py.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from noetl.model.errors import CredentialUnavailable, InvalidInput
from noetl.worker.secrets.keychain import STORED

Resolve = Callable[[str], Awaitable[Mapping[str, Any]]]
_NAMES: Final = ("auth", "credential")
_ENDS: Final = ("source", "target")  # of a transfer, each with a credential of its own
_MADE: Final = ("static", "http", "google_id_token")  # kinds of entries with fields of their own
_ABOUT: Final = frozenset({"name", "kind", "credential", "auth", "auto_renew", "scope", "ttl_seconds"})
_READ: Final = re.compile(r"\bkeychain\.(\w+)")


async def require_credentials(canonical: bytes, resolve: Resolve) -> None:
    """Raise InvalidInput with all missing credentials of a pinned playbook."""
    lines = []
    for name, places in _wanted(msgspec.json.decode(canonical)).items():
        try:
            await resolve(name)
        except KeyError:
            lines.append(f"  unknown credential '{name}', which {' and '.join(places)} needs")
        except CredentialUnavailable:
            continue  # it exists; the task that needs it says why it cannot be read
    if lines:
        fix = "Store each with `noetl credential put NAME`, or `export NOETL_CREDENTIAL_NAME=…` for a local run."
        raise InvalidInput("\n".join(["Credentials are missing; nothing was run.", *lines, fix]))


def _wanted(tree: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return stored names that are surely resolved, each with what needs it."""
    entries = {str(entry.get("name")): entry for entry in tree.get("keychain") or ()}
    steps = list(tree.get("workflow") or ())
    named: dict[str, list[str]] = {}
    for step in steps:
        for name in dict.fromkeys(_named_by(step)):
            named.setdefault(name, []).append(f"step `{step.get('step')}`")
    for name in dict.fromkeys(_READ.findall(msgspec.json.encode(steps).decode())):
        if name in entries:
            named.setdefault(name, []).append("a template")
    found: dict[str, list[str]] = {}
    for name, places in named.items():
        entry = entries.get(name)
        behind = name if entry is None else _behind(entry)
        if behind is not None and not _is_dynamic(behind):
            found.setdefault(behind, []).extend(places if entry is None else [f"`keychain.{name}`"])
    return found


def _behind(entry: Mapping[str, Any]) -> str | None:
    """Return the stored credential that an entry needs; None if it needs none."""
    source = next((entry[key] for key in _NAMES if isinstance(entry.get(key), str)), None)
    kind = str(entry.get("kind", ""))
    if source is not None:
        return str(source)
    if kind in _MADE or kind.startswith("secret") or entry.keys() - _ABOUT:
        return None
    return str(entry.get("name"))


def _named_by(step: Mapping[str, Any]) -> Iterator[str]:
    """Return the names that the tasks and the cursor of a step give."""
    tasks = [task for labelled in step.get("tool") or () for task in labelled.values()]
    tasks += [task[end] for task in tasks for end in _ENDS if isinstance(task.get(end), dict)]
    cursor = (step.get("loop") or {}).get("cursor")
    for task in [*tasks, *([cursor] if cursor else [])]:
        for key in _NAMES:
            yield from _in_auth(task.get(key))


def _in_auth(value: Any) -> Iterator[str]:
    """Return the names in `auth`, in each of its forms."""
    if isinstance(value, str):
        if value and not _is_dynamic(value):
            yield value
    elif isinstance(value, dict):
        if value.get("source") in STORED:
            yield from _in_auth(value.get("key"))
        yield from _in_auth(value.get("credential"))
        for inner in value.values():
            if isinstance(inner, dict):
                yield from _in_auth(inner)


def _is_dynamic(text: str) -> bool:
    return "{{" in text or "{%" in text
