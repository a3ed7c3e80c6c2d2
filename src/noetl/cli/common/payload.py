"""Orders for many executions, as `noetl exec --each FILE` is given them: JSON lines, or one JSON array of objects.

They are started by as few requests as the server takes. What is wrong is told with the file and the line. Tested in
tests/acceptance/test_exec_each.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
from msgspec import Struct

from noetl.cli.common.files import FileTrouble, read_playbook
from noetl.model.errors import InvalidInput, NoetlError

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.answers import Started

_MOST = 1_000  # of one request
_MOST_BYTES = 4 * 1024 * 1024
_PLACE = re.compile(r"\$\.payloads\[(\d+)\]")
_NEXT = re.compile(r"[^\s,]")


class Order(Struct, frozen=True):
    """The payload of one execution, and where it was read."""

    place: str  # FILE:LINE
    payload: dict[str, Any]


def orders(name: str, for_all: Mapping[str, Any]) -> list[Order]:
    """Read orders from a file or from standard input; values `for_all` are those that an order does not give itself."""
    troubles: list[FileTrouble] = []
    content = read_playbook(name, troubles)
    if content is None:
        raise InvalidInput(troubles[0].message)
    shown = "<stdin>" if name == "-" else name
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{shown}:{line}: this is not UTF-8.") from None
    found = _array(text, shown) if text.lstrip().startswith("[") else _lines(text, shown)
    made = [_order(f"{shown}:{line}", value, for_all) for line, value in found]
    if not made:
        raise InvalidInput(f"{shown} holds no orders: write a JSON object on each line, or an array of objects.")
    return made


def _lines(text: str, name: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _read(line, name, number)


def _array(text: str, name: str) -> Iterator[tuple[int, Any]]:
    _read(text, name, 1)  # from here on it is known to be well formed
    decoder, at = json.JSONDecoder(), text.index("[") + 1
    while (found := _NEXT.search(text, at)) is not None and found[0] != "]":
        at = found.start()
        line = text.count("\n", 0, at) + 1
        value, at = decoder.raw_decode(text, at)
        yield line, value


def _read(text: str, name: str, first: int) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        line = first + error.lineno - 1
        raise InvalidInput(f"{name}:{line}: this is not JSON: {error.msg}, column {error.colno}.") from None
    except (ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise InvalidInput(f"{name}:{first}: this is not JSON: {said}.") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _order(place: str, value: Any, for_all: Mapping[str, Any]) -> Order:
    if not isinstance(value, dict):
        raise InvalidInput(f"{place}: an order is a JSON object: its keys become those of `workload`.")
    return Order(place, {**for_all, **value})


async def begun(client: Client, wanted: list[Order], asked: Mapping[str, Any]) -> AsyncIterator[list[Started]]:
    """Start an execution for each order, by as few requests as can be; gives those of each request in order."""
    started, key = 0, asked["idempotency_key"]
    for number, part in enumerate(_parts(wanted)):
        own = f"{key}/{number}" if key and number else key
        try:
            told = await client.execute_many(
                payloads=[order.payload for order in part], **{**asked, "idempotency_key": own}
            )
        except NoetlError as error:
            more = f" {started} of {len(wanted)} executions have started, the others have not." if started else ""
            raise type(error)(_with_places(str(error), part) + more) from None
        started += len(part)
        yield told.executions


def _with_places(said: str, part: list[Order]) -> str:
    """Name a payload that a server refuses by where it was read."""
    return _PLACE.sub(lambda found: part[int(found[1])].place, said)


def _parts(wanted: list[Order]) -> Iterator[list[Order]]:
    """Cut orders into parts that one request may bring."""
    part: list[Order] = []
    size = 0
    for order in wanted:
        own = len(msgspec.json.encode(order.payload))
        if part and (len(part) == _MOST or size + own > _MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(order)
        size += own
    if part:
        yield part
