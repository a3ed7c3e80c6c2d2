"""Items of responses: identified, remembered, paged by a cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from noetl.engine.state.execution import Execution
from noetl.model.errors import InvalidInput, SourceUnavailable
from noetl.ports.triggers import Page
from noetl.server.processes.render import Mistake, render_data, render_each
from noetl.sources.web import HttpSource
from noetl.triggers.subscription import SubscriptionSpec

pytestmark = pytest.mark.asyncio


class Site:
    """Responses that the test gives, and the parameters that were asked for."""

    def __init__(self, *bodies: Any, **fields: Any) -> None:
        self.bodies, self.asked, self.taken = list(bodies), list[Any](), set[str]()
        spec = SubscriptionSpec("http", url="http://x", **{"id": "{{ item.id }}", **fields})
        self.source = HttpSource(spec, self.get, _render, _render_each)

    async def get(self, params: Mapping[str, Any]) -> Any:
        self.asked.append(params)
        return self.bodies.pop(0)

    async def poll(self, position: Mapping[str, Any], most: int = 10) -> Page:
        async def known(ids: Sequence[str]) -> set[str]:
            return self.taken & set(ids)

        page = await self.source.poll(position, most, known)
        self.taken |= {one.message_id for one in page.messages}
        return page


async def _render(data: Any, scope: Mapping[str, Any]) -> Any:
    found = render_data(data, Execution("0"), scope, 0, True)
    if isinstance(found, Mistake):
        raise InvalidInput(found.message)
    return found


async def _render_each(data: Any, scopes: Sequence[Mapping[str, Any]]) -> list[Any]:
    found = render_each(data, scopes, 0)
    return [InvalidInput(one.message) if isinstance(one, Mistake) else one for one in found]


async def test_an_item_comes_once_however_often_it_is_offered() -> None:
    first, second = {"id": 1}, {"id": "b"}
    site = Site([first], [first, second, second], [first, second])
    assert [one.data for one in (await site.poll({})).messages] == [first]
    page = await site.poll({})
    assert [(one.message_id, one.data) for one in page.messages] == [("b", second)]
    assert (page.position, page.lag, page.more) == ({}, 0, False)
    assert (await site.poll({})).messages == ()


async def test_a_cursor_asks_for_what_follows() -> None:
    site = Site(
        {"orders": [{"id": 1}], "next": 7},
        {"orders": [], "next": 7},
        {"orders": [], "next": None},
        items="{{ body.orders }}",
        cursor="{{ body.next }}",
        params={"after": "{{ cursor }}", "limit": 5, "none": None},
    )
    page = await site.poll({})
    assert (page.position, page.more) == ({"cursor": 7}, True)
    page = await site.poll(page.position)
    assert (page.position, page.more) == ({"cursor": 7}, False)
    assert (await site.poll(page.position)).position == {"cursor": 7}
    assert site.asked == [{"limit": 5}, {"after": 7, "limit": 5}, {"after": 7, "limit": 5}]


async def test_the_cursor_stays_until_all_items_are_taken_in() -> None:
    body = {"items": [{"id": at} for at in range(5)], "next": "z"}
    site = Site(body, body, items="{{ body['items'] }}", cursor="{{ body.next }}")
    page = await site.poll({}, 3)
    assert (len(page.messages), page.position, page.lag, page.more) == (3, {}, 2, True)
    page = await site.poll(page.position, 3)
    assert (len(page.messages), page.position, page.more) == (2, {"cursor": "z"}, True)


async def test_an_item_without_an_id_is_poisoned_once() -> None:
    items = [{"id": 1}, {"name": "x"}, {"id": ""}, {"id": True}]
    site = Site(items, items)
    page = await site.poll({})
    assert [bool(one.problem) for one in page.messages] == [False, True, True, True]
    assert (await site.poll({})).messages == ()


@pytest.mark.parametrize(
    ("body", "fields", "text"),
    [
        ({"a": 1}, {}, "`items` gives no list"),
        ({"a": 1}, {"items": "{{ body.none }}"}, "do not fit the response"),
        ([{"id": 1}], {"cursor": "{{ body }}"}, "`cursor` gives neither"),
        ([{"id": at} for at in range(1_001)], {}, "more than 1,000 items"),
    ],
)
async def test_a_response_that_does_not_fit_is_an_error(body: Any, fields: dict[str, Any], text: str) -> None:
    with pytest.raises(SourceUnavailable, match=text):
        await Site(body, **fields).poll({})
