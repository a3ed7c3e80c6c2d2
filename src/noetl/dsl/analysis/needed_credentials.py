"""Stored credentials that a pinned playbook surely needs, found before it starts.

Only names that are written out count: a template may yield any name. An entry of `keychain` counts when a task names it or a
template reads it. Tested in tests/unit/dsl/analysis/test_needed_credentials.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

STORED: Final = ("stored", "credential", "credentials", "keychain", "noetl")  # providers: NoETL itself
_NAMES: Final = ("auth", "credential")
_ENDS: Final = ("source", "target")  # of a transfer, each with a credential of its own
_ABOUT: Final = frozenset({"name", "kind", "credential", "auth", "auto_renew", "scope", "ttl_seconds"})
_READ: Final = re.compile(r"\bkeychain\.(\w+)")
_MARKS: Final = (b'"auth"', b'"credential"', b"keychain", b'"secrets"')


class Need(NamedTuple):
    """A credential, where it is used, and the pools whose workers resolve it."""

    name: str
    places: tuple[str, ...]
    pools: frozenset[str | None]  # None: not known before the work is queued


def needed_credentials(canonical: bytes) -> tuple[Need, ...]:
    """Return the credentials that a pinned playbook needs, in order of their use."""
    if not any(mark in canonical for mark in _MARKS):
        return ()
    return _Search(msgspec.json.decode(canonical)).run()


def missing_rows(needs: Iterable[Need]) -> tuple[dict[str, Any], ...]:
    """Return each missing credential with what uses it, for an error."""
    return tuple(
        {
            "credential": need.name,
            "used_by": list(need.places),
            "message": f"unknown credential '{need.name}', which {' and '.join(need.places)} needs",
        }
        for need in needs
    )


class _Search:
    """Names that the steps of one playbook use, followed through its keychain."""

    def __init__(self, tree: Mapping[str, Any]) -> None:
        self._entries = {str(entry.get("name")): entry for entry in tree.get("keychain") or ()}
        self._workbook = {label: task for labelled in tree.get("workbook") or () for label, task in labelled.items()}
        self._steps = list(tree.get("workflow") or ())
        self._executor = (tree.get("executor") or {}).get("spec") or {}
        self._places: dict[str, list[str]] = {}
        self._pools: dict[str, set[str | None]] = {}

    def run(self) -> tuple[Need, ...]:
        for step in self._steps:
            self._search(step)
        return tuple(
            Need(name, tuple(dict.fromkeys(places)), frozenset(self._pools[name]))
            for name, places in self._places.items()
        )

    def _search(self, step: Mapping[str, Any]) -> None:
        pool, where = self._pool(step), f"step `{step.get('step')}`"
        tasks = [(label, task) for labelled in step.get("tool") or () for label, task in labelled.items()]
        tasks += [(label, called) for label, task in tasks if (called := self._called(label, task)) is not None]
        cursor = (step.get("loop") or {}).get("cursor")
        unnamed = f"{step.get('step')}_task"  # the label of a task that has none
        uses = [(where if label == unnamed else f"task `{label}` of {where}", task) for label, task in tasks]
        for place, task in [*uses, *([(f"the cursor of {where}", cursor)] if cursor else [])]:
            for name in dict.fromkeys(_named_by(task)):
                self._use(name, place, pool)
        text = msgspec.json.encode([step, [task for _, task in tasks]]).decode()
        for name in dict.fromkeys(_READ.findall(text)):
            if name in self._entries:
                self._use(name, f"a template of {where}", pool)

    def _called(self, label: str, task: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the task of the workbook that a task calls."""
        if task.get("kind") != "workbook":
            return None
        name = task.get("task") or task.get("name") or label
        return self._workbook.get(name) if isinstance(name, str) else None

    def _pool(self, step: Mapping[str, Any]) -> str | None:
        """Return the pool of a step; None if it is a template, or if tags decide too."""
        tasks = [task.get("spec") or {} for labelled in step.get("tool") or () for task in labelled.values()]
        specs = [*tasks, (step.get("loop") or {}).get("spec") or {}, step.get("spec") or {}, self._executor]
        pool = next((spec["pool"] for spec in specs if spec.get("pool") is not None), "")
        if any(spec.get("requires") for spec in specs) or not isinstance(pool, str) or _is_dynamic(pool):
            return None
        return pool

    def _use(self, name: str, place: str, pool: str | None, within: tuple[str, ...] = ()) -> None:
        entry = self._entries.get(name)
        if entry is None:
            self._note(name, place, pool)
        elif name not in within:
            there = place if within else f"`keychain.{name}` in {place}"
            for other in dict.fromkeys(_READ.findall(msgspec.json.encode(entry).decode())):
                if other in self._entries:
                    self._use(other, there, pool, (*within, name))
            for source, is_stored in _behind(entry):
                if is_stored:
                    self._note(source, there, pool)
                else:
                    self._use(source, there, pool, (*within, name))

    def _note(self, name: str, place: str, pool: str | None) -> None:
        if name and not _is_dynamic(name):
            self._places.setdefault(name, []).append(place)
            self._pools.setdefault(name, set()).add(pool)


def _behind(entry: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield what an entry needs: names, and whether only a stored credential will do."""
    source = next((str(entry[key]) for key in _NAMES[::-1] if isinstance(entry.get(key), str)), None)
    kind, provider = str(entry.get("kind", "")), entry.get("provider")
    if kind == "static":
        return
    if kind.startswith("secret") and provider not in (None, *STORED):
        yield from [] if source is None else [(source, False)]
    elif kind.startswith("secret") and isinstance(entry.get("map"), dict):
        # The long name of a secret may be stored under its last part.
        yield from ((str(secret), True) for secret in entry["map"].values() if "/" not in str(secret))
    elif kind in ("http", "google_id_token"):
        yield from [] if source is None else [(source, False)]
    elif source is not None:
        yield source, True
    elif not entry.keys() - _ABOUT:
        yield str(entry.get("name")), True


def _named_by(task: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names that a task or a cursor gives."""
    for one in (task, *(task[end] for end in _ENDS if isinstance(task.get(end), dict))):
        for key in _NAMES:
            yield from _in_auth(one.get(key))
    secret = task.get("secret") or task.get("secret_name")
    if task.get("kind") == "secrets" and task.get("provider", "stored") in STORED and isinstance(secret, str):
        yield secret


def _in_auth(value: Any) -> Iterator[str]:
    """Yield the names in `auth`, in each of its forms."""
    if isinstance(value, str):
        if value and not _is_dynamic(value):
            yield value
    elif isinstance(value, dict):
        if value.get("source") in STORED:
            yield from _in_auth(value.get("key"))
        elif isinstance(value.get("source"), str) and isinstance(value.get("auth"), str):
            yield from _in_auth(value["auth"])
        yield from _in_auth(value.get("credential"))
        for inner in value.values():
            if isinstance(inner, dict):
                yield from _in_auth(inner)


def _is_dynamic(text: str) -> bool:
    return "{{" in text or "{%" in text
