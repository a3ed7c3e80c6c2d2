"""Stored results in server-side templates.

Fields beside the reference are read as they are; anything more must be loaded.

A decision that reads more stops with `Missing`. The caller loads what is missing and decides again, with the loaded
values by address in `resolved`. A result that could not be loaded stands there as an exception; reading it is an error
of the template. Loads nothing itself. Tested in tests/unit/engine/decision/test_needs_load.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from noetl.dsl.tree.playbook import default_label
from noetl.expr import EvaluationError, Result
from noetl.model.refs import MAPS, SCALARS, beside, expanded, holds_ref, is_ref, visible

Resolved = Mapping[str, Any]
NOTHING: Final[Resolved] = {}
_ABSENT: Final = object()


class NeedsLoad(msgspec.Struct, frozen=True):
    """What a decision needs: results to load, lists to store by address, evaluations."""

    loads: tuple[Mapping[str, Any], ...] = ()
    puts: Mapping[str, Any] = {}
    touched: bool = False  # the state was changed on the way and must be discarded
    template: str = ""  # that is too heavy to be evaluated here


class Missing(Exception):  # noqa: N818 (a request, not an error)
    """A decision stops until something is loaded or stored."""

    def __init__(self, *loads: Mapping[str, Any], puts: Mapping[str, Any] | None = None) -> None:
        super().__init__(", ".join([*(str(reference["ref"]) for reference in loads), *(puts or {})]))
        self.loads = loads
        self.puts = puts or {}


class UnreadableError(EvaluationError):
    """A template reads a stored result that cannot be loaded."""


def kind_of(error: Exception) -> str:
    """Return the error kind of a template's error."""
    return "reference" if isinstance(error, UnreadableError) else "template"


def found(resolved: Resolved, ref: str) -> Any:
    """Return what is stored under an address; raise its load error, or KeyError."""
    value = resolved[ref]
    if isinstance(value, Exception):
        raise UnreadableError(str(value))
    return value


class StoredResult(Result):
    """A loaded result, with the fields beside its reference as a fallback."""

    __slots__ = ("_beside",)

    def __init__(self, value: Any, beside: Mapping[str, Any], label: str = "") -> None:
        super().__init__(value, label)
        self._beside = beside

    def _by_label(self, key: str | int) -> Any:
        return self._beside[key] if isinstance(key, str) and key in self._beside else super()._by_label(key)


class Away(Mapping[str, Any]):
    """A result that is not loaded; reading beyond its visible fields raises Missing."""

    __slots__ = ("_reference", "_resolved", "_shown")

    def __init__(self, reference: Mapping[str, Any], resolved: Resolved) -> None:
        self._reference = reference
        self._resolved = resolved
        self._shown: dict[str, Any] = {
            name: seen(value, resolved) if is_ref(value) else value for name, value in beside(reference).items()
        }
        self._shown |= visible({**reference, "results": None})

    def __getitem__(self, key: str) -> Any:
        value = self._shown.get(key, _ABSENT)
        if value is not _ABSENT:
            return value
        keys = self._reference.get("keys")
        if isinstance(keys, list | tuple) and key not in keys:
            raise KeyError(key)
        self._raise_missing()
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        self._raise_missing()
        return iter(())

    def __len__(self) -> int:
        self._raise_missing()
        return 0

    def _raise_missing(self) -> None:
        if self._reference["ref"] in self._resolved:
            found(self._resolved, self._reference["ref"])  # loading was tried: raise the error
        raise Missing(self._reference)


class Gathered(Mapping[str, Any]):
    """A loop's result whose `results` are stored, or contain stored ones."""

    __slots__ = ("_resolved", "_value")

    def __init__(self, value: Mapping[str, Any], resolved: Resolved) -> None:
        self._value = value
        self._resolved = resolved

    def __getitem__(self, key: str) -> Any:
        value = self._value[key]
        return self._filled(value) if key == "results" else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def _filled(self, value: Any) -> Any:
        parts = [value] if is_ref(value) else value
        missing = [part for part in parts if is_ref(part) and part["ref"] not in self._resolved]
        if missing:
            raise Missing(*missing)
        filled = [found(self._resolved, part["ref"]) if is_ref(part) else part for part in parts]
        return filled[0] if is_ref(value) else filled


def seen(result: Any, resolved: Resolved = NOTHING) -> Any:
    """Return a result as templates see it; reading an unloaded part raises Missing."""
    if type(result) in SCALARS:
        return result
    result = expanded(result)
    if is_ref(result):
        loaded = resolved.get(result["ref"], _ABSENT)
        if loaded is _ABSENT or isinstance(loaded, Exception):
            return Away(result, resolved)
        return filled(result, loaded, resolved)
    inner = result.get("results") if isinstance(result, MAPS) else None
    if inner is None:
        return result
    if isinstance(inner, Mapping) and not is_ref(inner):
        labels = {label: seen(value, resolved) if holds_ref(value) else value for label, value in inner.items()}
        own = {name: seen(value, resolved) if is_ref(value) else value for name, value in result.items()}
        own |= {label: labels[label] for label in labels if result.get(label) is inner[label]}
        return {**own, "results": labels}
    if is_ref(inner) or (isinstance(inner, list) and any(map(is_ref, inner))):
        return Gathered(result, resolved)
    return result


def filled(reference: Mapping[str, Any], own: Any, resolved: Resolved) -> Any:
    """Return a loaded result with the labels beside its reference."""
    labels = {name: seen(part, resolved) if is_ref(part) else part for name, part in beside(reference).items()}
    if isinstance(own, Mapping):
        return {**labels, **own}
    return {**labels, "data": own} if labels else own


def view(result: Any, step: str, resolved: Resolved = NOTHING) -> Result:
    """Return a result as the value of its step's name."""
    result = expanded(result)
    value = seen(result, resolved)
    if is_ref(result) and not isinstance(value, Away):
        return StoredResult(value, visible(result), default_label(step))
    return Result(value, default_label(step))
