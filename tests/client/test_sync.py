"""`noetl.SyncClient`: the methods of `noetl.Client`, without `await`."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any, assert_type, get_type_hints

import pytest

import noetl
from noetl import Client, SyncClient
from noetl.client import api
from noetl.model.errors import Conflict, NoetlError, Unreachable
from noetl.model.events import Event
from noetl.wire.answers import Execution, Started
from tests.client.working import working
from tests.server.serving import TWO, WAITS, listening


def methods(kind: type) -> dict[str, Callable[..., Any]]:
    return {name: one for name, one in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def hints(method: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(inspect.unwrap(method), vars(api))


def test_every_method_is_there_and_no_other() -> None:
    assert methods(SyncClient).keys() == methods(Client).keys()
    assert "SyncClient" in dir(noetl)


@pytest.mark.parametrize("name", methods(Client))
def test_a_method_has_the_same_signature_and_does_not_return_a_coroutine(name: str) -> None:
    asynchronous, synchronous = methods(Client)[name], methods(SyncClient)[name]
    ours, theirs = inspect.signature(synchronous), inspect.signature(asynchronous)
    assert list(ours.parameters.values()) == list(theirs.parameters.values())
    assert synchronous.__name__ == name  # not that of another method
    assert synchronous.__doc__ == asynchronous.__doc__ or name == "close"
    assert not inspect.iscoroutinefunction(synchronous)
    assert not inspect.isasyncgenfunction(synchronous)
    if inspect.isasyncgenfunction(asynchronous):
        assert hints(asynchronous)["return"] == AsyncGenerator[Event, None]
        assert inspect.isgeneratorfunction(synchronous)
    else:
        assert ours.return_annotation == theirs.return_annotation


def use(url: str) -> tuple[str, list[int], str]:
    with SyncClient(url) as client:
        client.register(TWO)
        started = client.execute("test/two", tags=["t"])
        assert_type(started, Started)
        following = client.follow(started.execution_id)
        assert_type(following, Generator[Event, None, None])
        seen = [event.seq for event in following]
        ended = client.wait(started.execution_id)
        assert_type(ended, Execution)
        with pytest.raises(Conflict, match="failed"):
            client.retry(started.execution_id)
        waiting = client.execute(content=WAITS).execution_id
        begun = client.follow(waiting)
        next(begun)
        begun.close()  # a stream that is left early
        client.cancel(waiting)
        left = client.follow(waiting)
        next(left)  # closing the client ends this one
        return ended.status, seen, client.wait(waiting).status


@pytest.mark.asyncio
async def test_it_does_the_same_as_the_asynchronous_one(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, working(tmp_path, served.url):
        status, seen, other = await asyncio.to_thread(use, served.url)
        assert (status, other) == ("completed", "cancelled")
        assert seen == list(range(1, len(seen) + 1))


@pytest.mark.asyncio
async def test_it_works_in_the_thread_of_a_running_loop_and_ends_its_own() -> None:
    before = threading.active_count()
    client = SyncClient("http://127.0.0.1:9")
    with pytest.raises(Unreachable):
        client.status("1")
    client.close()
    client.close()
    assert threading.active_count() == before
    with pytest.raises(NoetlError, match="closed"):
        client.status("1")
