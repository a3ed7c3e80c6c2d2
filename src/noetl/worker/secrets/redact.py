"""Mask secrets in everything that a worker reports, and in its own log lines.

Reports are log lines of tasks, results, errors, recorded values and the state of a pipeline. A worker learns the values of every
credential that it resolves and masks them wherever they occur, also in common encodings. A short value is masked only
under the name of a secret. Lines and messages for people are masked by name too, whatever was resolved. Only whole values
are masked: else data that a task makes up would show how a secret begins. So texts are masked before they are cut, and
who must cut first says where, to lose what may be half a secret. Tasks of the same pipeline still see the real value;
everything that leaves the worker, and so the log and every state derived from it, has the mask. Tested in tests/unit/worker/secrets/test_redact.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any, Final, TypeVar

import msgspec

from noetl.dsl.secret_names import is_secret_name
from noetl.masking.texts import mask_text
from noetl.masking.values import MASK, KnownValues
from noetl.model.outcome import Outcome
from noetl.ports.work import Cut

_SET_COOKIE: Final = "set-cookie"
Message = TypeVar("Message", bound=msgspec.Struct)


class Secrets:
    """The secrets that a worker has resolved, and the mask over them."""

    def __init__(self) -> None:
        self.known = KnownValues()
        self._sees_cookies = False

    def learn(self, name: str, credential: Mapping[str, Any]) -> None:
        """Remember the values of a credential."""
        self.known.learn(name, credential)

    def learn_response(self, helper: Mapping[str, Any]) -> None:
        """Mask `set-cookie` from now on, once a response has set one.

        By name, not by value: most responses of some servers set a new one.
        """
        if not self._sees_cookies:
            self._sees_cookies = _SET_COOKIE in (helper.get("headers") or ())

    def holds(self, value: Any) -> bool:
        """Return whether a value contains a resolved secret."""
        if not self.known:
            return False
        if isinstance(value, str):
            return self.known.occurs(value)
        if isinstance(value, Mapping):
            return any(map(self.holds, value)) or any(map(self.holds, value.values()))
        if isinstance(value, list | tuple):
            return any(map(self.holds, value))
        return self._is_number(value)

    def may_be_in(self, data: bytes) -> bool:
        """Return whether data encoded as JSON may contain a secret."""
        if self.known.short or self.known.occurs_in_bytes(data):
            return True
        return self._sees_cookies and b'"set-cookie"' in data

    def text(self, text: str, cut: Cut = "") -> str:
        """Mask a text for people: resolved values, values by name, passwords in URLs.

        `cut` says where the caller cut it: as many characters as half a secret may have are left out there.
        """
        return mask_text(self.known.mask(self._whole(text, cut) if cut else text))

    def value(self, value: Any) -> Any:
        """Mask plain data; data without secrets stays the same object."""
        if isinstance(value, str):
            return self.known.mask(value)
        if isinstance(value, Mapping):
            made = {self.value(key): self._under(key, item) for key, item in value.items()}
            same = len(made) == len(value) and all(key in made and made[key] is item for key, item in value.items())
            return value if same else made
        if isinstance(value, list | tuple):
            items = [self.value(item) for item in value]
            return value if all(one is other for one, other in zip(items, value, strict=True)) else items
        return MASK if self._is_number(value) else value

    def _is_number(self, value: Any) -> bool:
        """Return whether a value is a number that is a secret."""
        return bool(self.known.numbers) and isinstance(value, int | float) and value in self.known.numbers

    def _whole(self, text: str, cut: Cut) -> str:
        """Return what is surely whole of a cut text, without what may be half a secret."""
        if not self.known:
            return text
        edge = max(0, len(text) - self.known.longest) if cut == "end" else min(len(text), self.known.longest)
        for begin, end in self.known.spans(text):
            if begin < edge < end:  # it is masked as a whole
                edge = end if cut == "end" else begin
                break
        return text[:edge] if cut == "end" else text[edge:]

    def _under(self, key: Any, value: Any) -> Any:
        if key == _SET_COOKIE and self._sees_cookies and isinstance(value, str):
            return MASK
        short = isinstance(value, str | int | float) and not isinstance(value, bool) and str(value) in self.known.short
        return MASK if short and isinstance(key, str) and is_secret_name(key) else self.value(value)

    def outcome(self, outcome: Outcome) -> Outcome:
        """Mask the texts of an error, which people read."""
        error = outcome.error
        if error is None:
            return outcome
        message, details, where = self.text(error.message), self._texts_of(error.details), self._texts_of(error.where)
        if (message, details, where) == (error.message, error.details, error.where):
            return outcome
        masked = msgspec.structs.replace(error, message=message, details=details, where=where)
        return msgspec.structs.replace(outcome, error=masked)

    def _texts_of(self, value: Any) -> Any:
        """Mask every text of plain data as a text for people."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self._texts_of(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._texts_of(item) for item in value]
        return MASK if self._is_number(value) else value

    def message(self, message: Message) -> Message:
        """Mask a report; one without secrets is returned unchanged."""
        if not self.known and not self.known.short and not self._sees_cookies:
            return message
        try:
            if not self.may_be_in(msgspec.json.encode(message)):
                return message
        except (TypeError, ValueError, OverflowError, RecursionError):
            pass  # not plain data: its receiver refuses it
        return self._struct(message)

    def _struct(self, data: Message) -> Message:
        """Mask a struct, but not its times, epochs and other fields that are numbers."""
        changes = {}
        for field in msgspec.structs.fields(data):
            value = getattr(data, field.name)
            shown = self._field(value, is_any=field.type is Any)
            if shown is not value:
                changes[field.name] = shown
        return msgspec.structs.replace(data, **changes) if changes else data

    def _field(self, value: Any, *, is_any: bool) -> Any:
        if isinstance(value, msgspec.Struct):
            return self._struct(value)
        if isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
            items = tuple(map(self._struct, value))
            return value if all(map(is_, items, value)) else items
        if not is_any and isinstance(value, int | float):
            return value
        plain = msgspec.to_builtins(value)
        masked = self.value(plain)
        return value if masked is plain else masked
