"""Poll subscriptions: start an execution for each message.

Start and position are one commit, which the store refuses if another server has taken in the message: so a crash anywhere
neither loses nor doubles one. A message that cannot start anything is a dead letter, also with the position, and the next one
follows. A source that cannot be read is tried again, later each time. One server at a time polls a subscription; the store is
right without that too. Tested in tests/conformance/test_subscription_poller.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from msgspec import json
from msgspec.structs import replace

from noetl.model.commit import Intake
from noetl.model.errors import (
    Conflict,
    CredentialUnavailable,
    InvalidInput,
    MissingCredentials,
    NoetlError,
    Passed,
    SourceUnavailable,
    StoreUnavailable,
    log_level,
)  # fmt: skip
from noetl.model.messages import AnyMessage, Start
from noetl.ports import Audit, AuditEntry, Catalog, Clock, Commit, EventLog, Receipt
from noetl.ports.triggers import Message, Page, Progress, Source, StoredTrigger, Subscriptions, Triggers
from noetl.server.background.subscriptions.feed import KIND, Duties, Feed, OpenSource
from noetl.server.background.subscriptions.poisoned import letter_of
from noetl.server.cache.ids import key_name, new_execution
from noetl.triggers.subscription import SubscriptionSpec

_log = logging.getLogger(__name__)
_MOST: Final = 100  # messages of one poll
_POLL_S: Final = 60.0
_TIDY_MS: Final = 3_600_000
_PAGE: Final = 500
Render = Callable[[Any, Mapping[str, Any]], Awaitable[Any]]  # raises InvalidInput


class Submit(Protocol):
    """Starts an execution and takes in a message with it."""

    async def __call__(
        self, execution_id: str, message: AnyMessage, act: Audit = None, intake: Intake | None = None
    ) -> Mapping[str, Any]: ...


class Store(EventLog, Catalog, Protocol):
    """A log and a catalog."""


class SubscriptionPoller:
    """Look for subscriptions that are due every second."""

    def __init__(
        self,
        triggers: Triggers,
        subscriptions: Subscriptions,
        store: Store,
        duties: Duties,
        submit: Submit,
        open_source: OpenSource,
        render: Render,
        clock: Clock,
        *,
        holder: str,
        most_bytes: int = 1 << 20,
        every_s: float = 1.0,
    ) -> None:
        self._triggers = triggers
        self._subscriptions = subscriptions
        self._store = store
        self._duties = duties
        self._submit = submit
        self._open_source = open_source
        self._render = render
        self._clock = clock
        self._holder = holder
        self._most_bytes = most_bytes
        self._every_s = every_s
        self._feeds: dict[str, Feed] = {}
        self._prune_at = 0
        self._broken: dict[str, int] = {}  # revisions that were logged, by id

    async def run(self) -> None:
        """Poll until cancelled; then close all sources."""
        try:
            while True:
                try:
                    await self._begin()
                except NoetlError as error:
                    _log.log(log_level(error), "Subscriptions are polled later: %s", error)
                except Exception as error:  # noqa: BLE001 - it must not end silently
                    _log.exception("Polling subscriptions failed; it is tried again", exc_info=error)
                await self._clock.sleep(self._every_s)
        finally:
            await self.close()

    async def look(self) -> None:
        """Poll every subscription that is due, and wait for the ends of the polls."""
        await self._begin()
        await asyncio.gather(*(feed.task for feed in self._feeds.values() if feed.task is not None))

    async def close(self) -> None:
        """Stop polling."""
        feeds, self._feeds = list(self._feeds.values()), {}
        await asyncio.gather(*(feed.stop() for feed in feeds), return_exceptions=True)

    async def _begin(self) -> None:
        """Begin to poll what is stored and not paused; stop what is not any more."""
        wanted = {one.trigger_id: one for one in await self._active()}
        for name, feed in list(self._feeds.items()):
            new = wanted.get(name)
            if new is None or (new.spec, new.created_at) != (feed.trigger.spec, feed.trigger.created_at):
                del self._feeds[name]
                await feed.stop()
            else:
                feed.renew(new)
        for name, trigger in wanted.items():
            if name in self._feeds or self._add(trigger):
                self._feeds[name].begin(self._poll)
        if self._clock.now() >= self._prune_at:
            self._prune_at = self._clock.now() + _TIDY_MS
            await self._subscriptions.prune()

    def _add(self, trigger: StoredTrigger) -> bool:
        """Add a subscription; False, and one line in the log, if it is broken."""
        try:
            self._feeds[trigger.trigger_id] = Feed(trigger)
        except InvalidInput as error:
            if self._broken.get(trigger.trigger_id) != trigger.revision:
                self._broken[trigger.trigger_id] = trigger.revision
                _log.error("Left out the subscription %s: %s", trigger.trigger_id, error)
            return False
        return True

    async def _active(self) -> list[StoredTrigger]:
        found: list[StoredTrigger] = []
        after: str | None = None
        while page := await self._triggers.triggers(KIND, after=after, limit=_PAGE):
            after = page[-1].trigger_id
            found += [one for one in page if not one.paused]
        return found

    async def _poll(self, feed: Feed) -> None:
        """Poll a subscription if it is due and this server has the duty."""
        now = self._clock.now()
        try:
            if not await feed.is_on_duty(self._duties, self._holder, now):
                await feed.close()
                return
            await self._poll_due(feed, now)
        except StoreUnavailable as error:
            _log.log(log_level(error), "Subscription %s is polled later: %s", feed.trigger.trigger_id, error)
        except Exception as error:  # noqa: BLE001 - one subscription must not stop the others
            _log.exception("Polling subscription %s failed", feed.trigger.trigger_id, exc_info=error)
            with suppress(NoetlError):
                await self._fail(feed, f"Polling failed: {type(error).__name__}. The log of the server says more.")

    async def _poll_due(self, feed: Feed, now: int) -> None:
        try:
            async with asyncio.timeout(_POLL_S):
                if not await feed.is_due(now):
                    return
                source = await feed.open(self._open_source)
                progress = await self._subscriptions.progress(feed.state_id)
                page = await source.poll(progress.position, _MOST, lambda ids: self._known(feed, ids))
            await self._take_in(feed, source, progress, page)
        except Passed:
            await feed.close()  # another server polls: what this one has read may be old
        except TimeoutError:
            await feed.close()
            await self._fail(feed, f"The source did not answer within {_POLL_S:g} seconds.")
        except (SourceUnavailable, CredentialUnavailable) as error:
            await feed.close()
            await self._fail(feed, str(error))
        except (Conflict, InvalidInput) as error:
            await self._fail(feed, str(error))
        else:
            feed.polled(page, self._clock.now())
            await feed.note(self._subscriptions, progress, self._clock.now())
            await feed.tidy(self._subscriptions, self._clock.now())

    async def _known(self, feed: Feed, ids: Sequence[str]) -> set[str]:
        return await self._subscriptions.known(feed.state_id, ids, self._clock.now())

    async def _fail(self, feed: Feed, why: str) -> None:
        _log.warning("Subscription %s is tried again later: %s", feed.trigger.trigger_id, why)
        feed.failed(why, self._clock.now())
        progress = await self._subscriptions.progress(feed.state_id)
        await feed.note(self._subscriptions, progress, self._clock.now())

    async def _take_in(self, feed: Feed, source: Source, progress: Progress, page: Page) -> None:
        """Start an execution for each message, in order, and acknowledge them."""
        position, revision, done = progress.position, progress.revision, list[Message]()
        try:
            for message in page.messages:
                position = position if message.position is None else message.position
                name = "" if source.is_ordered else message.message_id
                intake = Intake(feed.state_id, position, revision, name, message.message_id, at=self._clock.now())
                await self._start_or_bury(feed, message, intake)
                revision += 1
                done.append(message)
            if page.position != position:
                intake = Intake(feed.state_id, page.position, revision, at=self._clock.now())
                await self._commit(Commit(str(new_execution(self._clock.now())), 0, intake=intake))
        finally:
            if done:
                await source.ack(done)

    async def _start_or_bury(self, feed: Feed, message: Message, intake: Intake) -> None:
        """Start an execution, or make a dead letter. Raises what is tried again."""
        if message.problem:
            await self._bury(feed, message, intake, message.problem)
            return
        try:
            await self._start(feed, message, intake)
        except MissingCredentials:
            raise  # no fault of the message: it waits until they are stored
        except (InvalidInput, RecursionError, OverflowError) as error:
            why = str(error) if isinstance(error, InvalidInput) else "It is too deep, or a number in it too large."
            await self._bury(feed, message, intake, why)

    async def _start(self, feed: Feed, message: Message, intake: Intake) -> None:
        trigger, now = feed.trigger, self._clock.now()
        playbook = await self._store.content_hash(trigger.path, trigger.version)
        if playbook is None:
            which = f"version {trigger.version} of " if trigger.version else ""
            raise Conflict(f"The catalog has no {which}`{trigger.path}`. Register it.")
        payload = await payload_of(feed.spec, message, self._render, self._most_bytes)
        by, execution_id = f"{KIND}:{trigger.trigger_id}", str(new_execution(now))
        name = f"{KIND}:{key_name(feed.state_id, f'{intake.revision}:{message.message_id}')}"
        start = Start(name, trigger.path, playbook, payload, tags=(by,))
        detail = {"path": trigger.path, "playbook": playbook, "message": message.message_id}
        act = AuditEntry(now, by, "execution.start", execution_id, detail)
        try:
            await self._submit(execution_id, start, act, intake)
        except NoetlError:
            raise
        except Exception as error:
            raise InvalidInput(f"An execution with it cannot be stored: {type(error).__name__}.") from error

    async def _bury(self, feed: Feed, message: Message, intake: Intake, why: str) -> None:
        """Make a dead letter of a message. Raises Passed."""
        now, trigger = self._clock.now(), feed.trigger
        _log.warning("Message %s of subscription %s is a dead letter: %s", message.message_id, trigger.trigger_id, why)
        change = letter_of(str(new_execution(now)), trigger, message, why, self._most_bytes, now)
        assert change.letter is not None
        buried = replace(intake, is_poisoned=True)
        commit = Commit(change.letter.execution_id, 0, letters=(change,), intake=buried)
        try:
            await self._commit(commit)
        except NoetlError:
            raise
        except Exception as error:  # noqa: BLE001 - it holds what the store cannot hold: then without it
            _log.warning("The dead letter of %s is written without its data: %s", message.message_id, error)
            less = replace(change, letter=replace(change.letter, payload={}, last_error="The store cannot hold it."))
            await self._commit(replace(commit, letters=(less,)))

    async def _commit(self, commit: Commit) -> None:
        made = self._store.commit([commit])
        receipt = made if isinstance(made, Receipt) else await made
        if receipt.commits[0].status == "passed":
            raise Passed


def scope_of(message: Message) -> dict[str, Any]:
    """Return `message` as templates see it."""
    return {"message": {"id": message.message_id, "data": message.data, **message.facts}}


async def payload_of(spec: SubscriptionSpec, message: Message, render: Render, most_bytes: int) -> dict[str, Any]:
    """Return the workload of a message. Raises InvalidInput."""
    scope = scope_of(message)
    try:
        size = len(json.encode(scope))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"The message cannot be written as JSON: {error}") from None
    if size > most_bytes:
        raise InvalidInput(f"The message is larger than {most_bytes:,} bytes.")
    return dict(await render(dict(spec.payload), scope)) if spec.payload else scope
