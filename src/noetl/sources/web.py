"""Items of a response over HTTP, which is asked for again and again.

The response has no memory of its reader, so the store remembers the ids of items for as long as they are offered. With a
`cursor`, the next request can ask for what follows. Tested in tests/unit/sources/test_web.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from noetl.model.errors import InvalidInput, SourceUnavailable
from noetl.ports.triggers import Known, Message, Page
from noetl.triggers.subscription import SubscriptionSpec, message_key

_MOST_ITEMS: Final = 1_000
Get = Callable[[Mapping[str, Any]], Awaitable[Any]]  # parameters of the query → parsed body; raises SourceUnavailable
Render = Callable[[Any, Mapping[str, Any]], Awaitable[Any]]  # raises InvalidInput
RenderEach = Callable[
    [Any, Sequence[Mapping[str, Any]]], Awaitable[Sequence[Any]]
]  # an InvalidInput for one that fails


class HttpSource:
    """Items of the responses of one URL."""

    is_ordered = False

    def __init__(self, spec: SubscriptionSpec, get: Get, render: Render, render_each: RenderEach) -> None:
        self._spec = spec
        self._get = get
        self._render = render
        self._render_each = render_each

    async def poll(self, position: Mapping[str, Any], most: int, known: Known) -> Page:
        items, following = await self._ask(position)
        messages = await self._messages(items)
        taken = await known([message.message_id for message in messages]) if messages else set()
        fresh = list({one.message_id: one for one in messages if one.message_id not in taken}.values())
        found, lag = tuple(fresh[:most]), max(0, len(fresh) - most)
        if lag:
            return Page(found, position, lag, more=True)
        return Page(found, following, more=bool(items) and following != position)

    async def ack(self, messages: Sequence[Message]) -> None: ...

    async def is_woken(self) -> bool:
        return False

    async def close(self) -> None: ...

    async def _ask(self, position: Mapping[str, Any]) -> tuple[list[Any], Mapping[str, Any]]:
        """Return the items of a response, and the position after it."""
        spec = self._spec
        wanted = {"items": spec.items, **({"cursor": spec.cursor} if spec.cursor else {})}
        try:
            params = (
                await self._render(dict(spec.params), {"cursor": position.get("cursor", "")}) if spec.params else {}
            )
            body = await self._get({name: value for name, value in params.items() if value not in (None, "")})
            found = await self._render(wanted, {"body": body})
        except InvalidInput as error:
            raise SourceUnavailable(f"The templates of the subscription do not fit the response: {error}") from None
        items, cursor = found["items"], found.get("cursor")
        if not isinstance(items, list):
            raise SourceUnavailable("`items` gives no list. Correct the template.")
        if len(items) > _MOST_ITEMS:
            raise SourceUnavailable(f"The response has more than {_MOST_ITEMS:,} items. Ask for fewer in `params`.")
        if cursor is None or cursor == "":
            return items, position
        if not isinstance(cursor, str | int):
            raise SourceUnavailable("`cursor` gives neither a text nor a whole number. Correct the template.")
        return items, {"cursor": cursor}

    async def _messages(self, items: Sequence[Any]) -> list[Message]:
        ids = await self._render_each(self._spec.id, [{"item": item} for item in items]) if items else ()
        return [_message(item, found) for item, found in zip(items, ids, strict=True)]


def _message(item: Any, found: Any) -> Message:
    if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
        return Message(message_key(str(found)), item)
    problem = f"`id` gives {'no text for this item' if not isinstance(found, InvalidInput) else f'an error: {found}'}."
    return Message(f"sha256:{sha256(msgspec.json.encode(item)).hexdigest()}", item, problem=problem)
