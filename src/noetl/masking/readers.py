"""The mask over everything that is shown: answers, streams, output, process logs.

It is applied where data is read; the log keeps its bytes. A value under a secret's name is masked, and so is a value that
this process knows, and a password in a URL. Maps that name what they hold (`{name, value}`, `{path, before, after}`) are
masked by that name. Fields of structs are names of NoETL, so only the data in them is masked. Tested in
tests/unit/masking/test_readers.py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from functools import cache
from operator import is_
from typing import Any, Final

import msgspec

from noetl.dsl.secret_names import HiddenNames
from noetl.masking.json_stream import JsonStreamMask
from noetl.masking.texts import HINTS, mask_data_text, mask_text
from noetl.masking.values import MASK, any_known, mask_known
from noetl.model.events import Event

_LARGE: Final = 64 * 1024  # bytes of JSON that are masked beside the event loop
_SHOWN: Final = frozenset((MASK, "(secret)", "(undefined)", ""))
_NAMED_BY: Final = (("name", ("value",)), ("key", ("value",)), ("path", ("before", "after")))
_OF_EVENT: Final = "payload of an event"
_OWN: Final = frozenset(((_OF_EVENT, "key"), ("skipped", "key"), ("details", "key")))  # of a loop's row, of a write
# Maps whose keys are steps or runs: a step may be called `get_token`.
_BY_STEP: Final = frozenset(("steps", "statuses", "ended", "runs", "counts", "numbers", "partial", "spent", "replays"))
_encode = msgspec.json.Encoder().encode


class ReaderMask:
    """The mask of one process; `more` are further names of secrets."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        more = tuple(more)
        self._names = HiddenNames(more)
        self._has_more = bool(more)
        self._hides = self._names.hides
        self._turns = asyncio.Lock()

    def json(self, data: Any) -> bytes:
        """Return data as JSON, masked; without secrets, it is encoded once and not copied."""
        return self._json(_encode(data), data)

    async def answer(self, data: Any) -> bytes:
        """Return data as JSON, masked; what is large is masked in a thread, from a copy.

        One at a time: threads share the interpreter with the event loop.
        """
        coded: bytes = _encode(data)
        if len(coded) <= _LARGE:
            return self._json(coded, data)
        async with self._turns:
            return await asyncio.to_thread(self._copied, coded, type(data))

    def _copied(self, coded: bytes, kind: type[Any]) -> bytes:
        return _encode(self.data(msgspec.json.decode(coded, type=kind))) if self.may_hold(coded) else coded

    def _json(self, coded: bytes, data: Any) -> bytes:
        if not self.may_hold(coded):
            return coded
        masked = self.data(data)
        return coded if masked is data else _encode(masked)

    def may_hold(self, coded: bytes) -> bool:
        """Return whether JSON may hold a secret."""
        if self._has_more:
            return True
        return _hint().search(coded) is not None or any_known(coded)

    def line(self, text: str) -> str:
        """Mask a log line of this process, or several."""
        return mask_text(mask_known(text), self._hides, has_more=self._has_more)

    def data(self, data: Any, within: str = "") -> Any:
        """Mask plain data or a struct; what has no secret stays the same object.

        `within` is the name that the data has itself.
        """
        if isinstance(data, str):
            return mask_data_text(mask_known(data), self._hides, has_more=self._has_more)
        if isinstance(data, dict):
            return self._map(data, within)
        if isinstance(data, list | tuple):
            items = [self.data(item, within) for item in data]
            return data if all(map(is_, items, data)) else items
        if data is None or isinstance(data, int | float):
            return data
        if isinstance(data, msgspec.Struct):
            return self._struct(data)
        return self._map(data, within) if isinstance(data, Mapping) else data

    def events(self, events: Iterable[Event]) -> list[Event]:
        """Mask the payloads of events."""
        return [self.event(event) for event in events]

    def event(self, event: Event) -> Event:
        """Mask the payload of an event."""
        payload = self.data(event.payload, _OF_EVENT)
        return event if payload is event.payload else msgspec.structs.replace(event, payload=payload)

    def event_json(self, event: Event) -> tuple[Event, bytes]:
        """Return the masked payload of an event, and the same as JSON."""
        coded: bytes = _encode(event.payload)
        masked = self.event(event) if self.may_hold(coded) else event
        return masked, coded if masked is event else _encode(masked.payload)

    def stream(self) -> JsonStreamMask:
        """Return a mask over one JSON document that is sent in pieces."""
        return JsonStreamMask(self._hides, has_more=self._has_more)

    def hides(self, name: str) -> bool:
        """Return whether a value under this name is masked."""
        return self._hides(name)

    def under(self, name: str, data: Any) -> Any:
        """Mask data that has a name."""
        return _hidden(data) if self._hides(name) else self.data(data, name)

    def _map(self, data: Mapping[Any, Any], within: str) -> Mapping[Any, Any]:
        naming, held = _naming(data)
        made, is_same = {}, True
        for key, value in data.items():
            if not isinstance(key, str):
                shown = self.data(value)
            elif key == "payload" and "event_type" in data:
                shown = self.data(value, _OF_EVENT)
            elif key in held:
                shown = self.under(naming, value)
            elif within in _BY_STEP or (within, key) in _OWN or (key == "key" and held):
                shown = self.data(value, key)
            else:
                shown = self.under(key, value)
            made[mask_known(key) if isinstance(key, str) else key] = shown
            is_same = is_same and shown is value
        return data if is_same and made.keys() == data.keys() else made

    def _struct(self, data: msgspec.Struct) -> msgspec.Struct:
        changes, named = {}, {}
        for field in data.__struct_fields__:
            value = getattr(data, field)
            if value is not None and not isinstance(value, int | float):
                named[field] = value
        naming, held = _naming(named)
        for field, value in named.items():
            within = _OF_EVENT if field == "payload" and "event_type" in named else field
            shown = self.under(naming, value) if field in held else self.data(value, within)
            if shown is not value:
                changes[field] = shown
        return msgspec.structs.replace(data, **changes) if changes else data


@cache
def _hint() -> re.Pattern[bytes]:
    """Return the pattern of what JSON without secrets does not have.

    RE2 reads the text once: this is asked for each answer and log line.
    """
    import re2  # when the first data is masked, not when a command starts

    options = re2.Options()
    options.case_sensitive = False
    pattern: re.Pattern[bytes] = re2.compile("|".join(map(re.escape, (*HINTS, "://"))).encode(), options)
    return pattern


def _naming(data: Mapping[Any, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the name that a map gives to a value in it, and the keys of that value."""
    for key, held in _NAMED_BY:
        name = data.get(key)
        if isinstance(name, str) and any(one in data for one in held):
            return name, held
    return "", ()


def _hidden(data: Any) -> Any:
    """Return data with the mask over every text and number."""
    if data is None or isinstance(data, bool) or (isinstance(data, str) and data in _SHOWN):
        return data
    if isinstance(data, Mapping):
        made = {key: _hidden(value) for key, value in data.items()}
        return data if all(made[key] is value for key, value in data.items()) else made
    if isinstance(data, list | tuple):
        items = [_hidden(item) for item in data]
        return data if all(one is other for one, other in zip(items, data, strict=True)) else items
    if isinstance(data, msgspec.Struct):
        return _hidden(msgspec.to_builtins(data))
    return MASK
