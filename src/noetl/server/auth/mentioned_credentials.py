"""Names of the credentials that a playbook mentions.

A worker gets only these for a lease: those in `auth` and `credential` of tasks, cursors and places of data, those that
tasks of kind `secrets` read, and those of the entries of `keychain`. A name that is a template stands for all names that it can produce: `pg_{{ workload.env }}` for
those that begin with `pg_`, and `{{ workload.db }}` for every name. Tested in tests/server/auth/test_mentioned_credentials.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

_NAMES: Final = ("auth", "credential")
_PLACES: Final = ("source", "target")  # of data; as a template, one may hold an `auth`
_TRIGGERS: Final = ("triggers", "notifications")  # which only the server uses
_SECRETS: Final = "secrets"  # the kind that reads a secret by its name
_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_SHORT: Final = re.compile(r"(?:^|/)secrets/([^/]+)")  # in the long name of a secret
_MARKS: Final = ("{{", "}}", "{%", "{#")


class MentionedCredentials:
    """The names that a playbook can ask for."""

    def __init__(self, texts: Iterable[str]) -> None:
        given = set(texts)
        dynamic = {text for text in given if any(mark in text for mark in _MARKS)}
        self._names = frozenset(given - dynamic)
        self._patterns = [_pattern(text) for text in dynamic]

    def __contains__(self, name: str) -> bool:
        return name in self._names or any(pattern.fullmatch(name) for pattern in self._patterns)


@lru_cache(maxsize=64)
def mentioned_in(canonical: bytes) -> MentionedCredentials:
    """Return the credentials that a pinned playbook mentions."""
    tree = msgspec.json.decode(canonical)
    run = {name: value for name, value in tree.items() if name not in _TRIGGERS}
    return MentionedCredentials((*_in_values(run), *_in_keychain(tree.get("keychain") or ())))


def is_in_triggers(canonical: bytes, name: str) -> bool:
    """Return whether a trigger or notification of a playbook names a credential.

    Only the server uses it, so no worker gets it.
    """
    tree = msgspec.json.decode(canonical)
    return name in _in_values([tree.get(part) or () for part in _TRIGGERS])


def mentioned_in_patch(patch: Mapping[str, Any] | None) -> MentionedCredentials:
    """Return the credentials that the patch of a retried dead letter mentions."""
    values = {path.rpartition(".")[2]: value for path, value in ((patch or {}).get("values") or {}).items()}
    return MentionedCredentials(_in_values(values))


def _in_values(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        if key == "auth" and "source" in value and isinstance(value.get("key"), str):
            yield value["key"]
        if value.get("kind") == _SECRETS:
            yield from _in_secrets(value)
        for name, inner in value.items():
            yield from _in_values(inner, "auth" if key == "auth" and isinstance(inner, dict) else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _in_values(inner, key)
    elif isinstance(value, str) and (key in _NAMES or (key in _PLACES and any(mark in value for mark in _MARKS))):
        yield value


def _in_secrets(task: Any) -> Iterator[str]:
    """Yield the names that a task of kind `secrets` reads."""
    for name, inner in task.items():
        if isinstance(inner, dict):
            yield from _in_secrets(inner)
        elif isinstance(inner, str) and name in ("secret", "secret_name"):
            yield inner


def _in_keychain(entries: Any) -> Iterator[str]:
    for entry in entries:
        yield str(entry.get("name", ""))
        wanted = entry.get("map")
        for secret in map(str, wanted.values() if isinstance(wanted, dict) else () if wanted is None else (wanted,)):
            yield secret
            yield from (found[1] for found in _SHORT.finditer(secret))


def _pattern(text: str) -> re.Pattern[str]:
    """Return what a template can produce: its fixed text, and anything between."""
    fixed = _TEMPLATE.split(text)
    if any(mark in part for part in fixed for mark in _MARKS):
        return re.compile(".*", re.DOTALL)
    return re.compile(".*".join(map(re.escape, fixed)), re.DOTALL)
