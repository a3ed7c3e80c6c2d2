"""`noetl.SyncClient`: the methods of `Client` for code without `async`.

    with SyncClient("http://127.0.0.1:8082", token) as noetl:
        started = noetl.execute("examples/hello", {"name": "Ada"})
        ended = noetl.wait(started.execution_id)

Each method runs the coroutine of `Client` on an event loop in a thread of its own, so it also works where a loop runs already
(it blocks that loop while it waits), and from several threads. Tested in tests/client/test_sync.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from functools import wraps
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from noetl.client.api import Client
from noetl.model.errors import InvalidInput

P = ParamSpec("P")
T = TypeVar("T")


def _sync(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncClient, P], T]:
    """Return a method that waits for the coroutine of a method of `Client`."""

    @wraps(method)
    def call(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(lambda client: method(client, *args, **kwargs))

    return call


def _sync_generator(
    method: Callable[Concatenate[Client, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[SyncClient, P], Generator[T, None, None]]:
    """Return a method that yields what an asynchronous generator of `Client` yields."""

    @wraps(method)
    def generate(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        yield from self._generate(method(self._client, *args, **kwargs))

    return generate


async def _next(stream: AsyncGenerator[T, None]) -> T:
    return await anext(stream)


class SyncClient:
    """Client of one server, or of several with failover; its methods block."""

    def __init__(self, server: str | Sequence[str], token: str | None = None) -> None:
        self._client = Client(server, token)
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._is_closed = False

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; idempotent."""
        with self._lock:
            self._is_closed = True
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(self._end(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _end(self) -> None:
        """End what still runs, such as calls of other threads and open streams."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()
        await self._client.close()

    def _generate(self, stream: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        try:
            while True:
                try:
                    item = self._run(lambda _: _next(stream))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if not self._is_closed:  # closing ends every stream
                self._run(lambda _: stream.aclose())

    def _run(self, start: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine in the thread and return its result, or raise its error."""
        loop = self._running_loop()
        future = asyncio.run_coroutine_threadsafe(start(self._client), loop)
        try:
            return future.result()
        except BaseException:  # Ctrl-C too: nothing waits for the answer any more
            future.cancel()
            raise

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._is_closed:
                raise InvalidInput("This client is closed. Make a new one.")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = Thread(target=self._loop.run_forever, name="noetl.SyncClient", daemon=True)
                self._thread.start()
            return self._loop

    register = _sync(Client.register)
    playbooks = _sync(Client.playbooks)
    playbook = _sync(Client.playbook)
    ui_schema = _sync(Client.ui_schema)
    versions = _sync(Client.versions)
    unregister = _sync(Client.unregister)
    canonical = _sync(Client.canonical)
    execute = _sync(Client.execute)
    execute_many = _sync(Client.execute_many)
    executions = _sync(Client.executions)
    status = _sync(Client.status)
    wait = _sync(Client.wait)
    events = _sync(Client.events)
    follow = _sync_generator(Client.follow)
    state = _sync(Client.state)
    explain = _sync(Client.explain)
    compare = _sync(Client.compare)
    cancel = _sync(Client.cancel)
    pause = _sync(Client.pause)
    resume = _sync(Client.resume)
    signal = _sync(Client.signal)
    patch = _sync(Client.patch)
    complete = _sync(Client.complete)
    delete = _sync(Client.delete)
    fork = _sync(Client.fork)
    retry = _sync(Client.retry)
    result = _sync(Client.result)
    workers = _sync(Client.workers)
    finished = _sync(Client.finished)
    drain = _sync(Client.drain)
    pools = _sync(Client.pools)
    queue = _sync(Client.queue)
    line = _sync(Client.line)
    credentials = _sync(Client.credentials)
    credential = _sync(Client.credential)
    test_credential = _sync(Client.test_credential)
    put_credential = _sync(Client.put_credential)
    delete_credential = _sync(Client.delete_credential)
    outbox = _sync(Client.outbox)
    outbox_message = _sync(Client.outbox_message)
    retry_message = _sync(Client.retry_message)
    discard_message = _sync(Client.discard_message)
    schedules = _sync(Client.schedules)
    schedule = _sync(Client.schedule)
    create_schedule = _sync(Client.create_schedule)
    change_schedule = _sync(Client.change_schedule)
    pause_schedule = _sync(Client.pause_schedule)
    resume_schedule = _sync(Client.resume_schedule)
    backfill = _sync(Client.backfill)
    progress = _sync(Client.progress)
    delete_schedule = _sync(Client.delete_schedule)
    webhooks = _sync(Client.webhooks)
    webhook = _sync(Client.webhook)
    create_webhook = _sync(Client.create_webhook)
    pause_webhook = _sync(Client.pause_webhook)
    resume_webhook = _sync(Client.resume_webhook)
    delete_webhook = _sync(Client.delete_webhook)
    test_webhook = _sync(Client.test_webhook)
    notifications = _sync(Client.notifications)
    notification = _sync(Client.notification)
    create_notification = _sync(Client.create_notification)
    triggers = _sync(Client.triggers)
    trigger = _sync(Client.trigger)
    create_trigger = _sync(Client.create_trigger)
    pause_trigger = _sync(Client.pause_trigger)
    resume_trigger = _sync(Client.resume_trigger)
    delete_trigger = _sync(Client.delete_trigger)
    pause_notification = _sync(Client.pause_notification)
    resume_notification = _sync(Client.resume_notification)
    delete_notification = _sync(Client.delete_notification)
    test_notification = _sync(Client.test_notification)
    subscriptions = _sync(Client.subscriptions)
    subscription = _sync(Client.subscription)
    create_subscription = _sync(Client.create_subscription)
    pause_subscription = _sync(Client.pause_subscription)
    resume_subscription = _sync(Client.resume_subscription)
    delete_subscription = _sync(Client.delete_subscription)
    test_subscription = _sync(Client.test_subscription)
    next_runs = _sync(Client.next_runs)
    firings = _sync(Client.firings)
    keychain = _sync(Client.keychain)
    overview = _sync(Client.overview)
    metrics = _sync(Client.metrics)
    health = _sync(Client.health)
    ready = _sync(Client.ready)
    me = _sync(Client.me)
    users = _sync(Client.users)
    create_user = _sync(Client.create_user)
    change_user = _sync(Client.change_user)
    delete_user = _sync(Client.delete_user)
    groups = _sync(Client.groups)
    put_group = _sync(Client.put_group)
    delete_group = _sync(Client.delete_group)
    audit = _sync(Client.audit)
    audit_chain = _sync(Client.audit_chain)
    verify_audit = _sync(Client.verify_audit)
    tokens = _sync(Client.tokens)
    create_token = _sync(Client.create_token)
    revoke_token = _sync(Client.revoke_token)
    data_keys = _sync(Client.data_keys)
    rotate_keys = _sync(Client.rotate_keys)
    letters = _sync(Client.letters)
    letter_groups = _sync(Client.letter_groups)
    letter = _sync(Client.letter)
    replay_letter = _sync(Client.replay_letter)
    replay_letters = _sync(Client.replay_letters)
    discard_letter = _sync(Client.discard_letter)
    discard_letters = _sync(Client.discard_letters)
