"""Routes that all triggers share: list, show, pause, resume and delete.

A noun describes itself once, as `TriggerNoun`, adds these routes, and declares only its own ones. Tested in
tests/server/api/triggers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct, to_builtins

from noetl.ports.schedules import Schedule
from noetl.ports.team import Audit
from noetl.ports.triggers import StoredTrigger
from noetl.schedules.spec import Problem
from noetl.server.auth.gate import Role
from noetl.server.cache.catalog_lookup import similar_path
from noetl.server.http.endpoint import Call, Handler, Noun
from noetl.server.operations.triggers import list_within, switch
from noetl.server.problems import Refusal, not_found
from noetl.server.services import Services
from noetl.wire.answers import Removed
from noetl.wire.triggers.fields import TriggersQuery

Stored = TypeVar("Stored", Schedule, StoredTrigger)
Row = TypeVar("Row")


@dataclass(frozen=True)
class TriggerStore(Generic[Stored]):
    """How the triggers of a noun are read and changed."""

    find: Callable[[Services, str], Awaitable[Stored | None]]
    page: Callable[[Call, TriggersQuery], Awaitable[list[Stored]]]
    add: Callable[[Services, Stored, Audit], Awaitable[bool]]  # False: its id is taken
    switch: Callable[[Services, str, bool, Audit], Awaitable[Stored | None]]  # True: pause, False: resume
    remove: Callable[[Services, str, Audit], Awaitable[bool]]  # False: it is unknown


@dataclass(frozen=True)
class TriggerNoun(Generic[Stored, Row]):
    """What the routes need to know of a noun: its words, its store and its rows."""

    noun: Noun
    word: str  # `webhook`; its routes begin with /api/webhooks
    kind: str  # first word of its actions in the audit trail
    store: TriggerStore[Stored]
    row: Callable[[Call, Stored], Awaitable[Row]]
    row_type: type[Row]
    of: Literal["", "path"] = ""  # see Endpoint
    if_taken: str = "Delete it, or choose another name."
    defined_in: str = "triggers"  # field of a playbook that defines some
    undefined_by: str = "with other triggers"  # version of the playbook that removes it

    def creates(
        self, role: Role, example: Any, problems: tuple[int, ...] = (404, 409, 422)
    ) -> Callable[[Handler], Handler]:
        """Declare the route that creates a trigger."""
        path, act = f"/api/{self.word}s", f"{self.kind}.create"
        return self.noun.route("POST", path, role, status=201, act=act, example=example, problems=problems, of=self.of)

    async def find(self, call: Call, trigger_id: str) -> Stored:
        """Return a trigger that exists for the caller. Raises Refusal."""
        found = await self.store.find(call.services, trigger_id)
        if found is None or not call.sees(found.path):
            raise self.missing(trigger_id)
        return found

    async def find_own(self, call: Call, trigger_id: str) -> Stored:
        """Return a trigger that was made by API. Raises Refusal."""
        found = await self.find(call, trigger_id)
        if found.owner:
            detail = f"`{self.defined_in}` of the playbook `{found.owner}` define this {self.word}."
            fix = f"Register a version of the playbook {self.undefined_by}, or pause the {self.word}."
            raise Refusal(409, "conflict", detail, fix=fix)
        return found

    async def add(self, call: Call, made: Stored) -> Row:
        """Store a new trigger. Raises Refusal if its name is taken."""
        name = id_of(made)
        if not await self.store.add(call.services, made, call.act(name, path=made.path)):
            detail = f"There is a {self.word} `{name}`."
            raise Refusal(409, "conflict", detail, where="$.name", fix=self.if_taken)
        return await self.row(call, made)

    def missing(self, trigger_id: str) -> Refusal:
        """Return the refusal of an unknown id."""
        return not_found(f"No {self.word} {trigger_id}.", f"GET /api/{self.word}s lists the {self.word}s.")


def add_reads(
    kind: TriggerNoun[Stored, Row],
    rows: Callable[[list[Row], str | None], Any],
    shows: str,
    detail: Callable[[Call, Stored], Awaitable[Row]] | None = None,
) -> None:
    """Add the routes that list triggers and show one, the latter with `detail`."""
    route, path = kind.noun.route, f"/api/{kind.word}s"

    @route("GET", path, "viewer", f"List {kind.word}s by id.", returns=rows, problems=(422,), of=kind.of)
    async def listed(call: Call, query: TriggersQuery) -> Any:
        found = await kind.store.page(call, query)
        cursor = id_of(found[-1]) if len(found) == query.limit else None
        return rows([await kind.row(call, one) for one in found], cursor)

    @route("GET", f"{path}/{{{kind.word}_id}}", "viewer", shows, returns=kind.row_type, problems=(404,), of=kind.of)
    async def shown(call: Call, trigger_id: str) -> Row:
        return await (detail or kind.row)(call, await kind.find(call, trigger_id))


def add_changes(
    kind: TriggerNoun[Stored, Row], *, pauses: str, resumes: str, removes: str, remover: Role = "operator"
) -> None:
    """Add the routes that pause, resume and delete a trigger, with their summaries."""
    route, path, act = kind.noun.route, f"/api/{kind.word}s/{{{kind.word}_id}}", f"{kind.kind}."
    row, of = kind.row_type, kind.of

    @route("POST", f"{path}/pause", "operator", pauses, returns=row, act=f"{act}pause", problems=(404,), of=of)
    async def pause(call: Call, trigger_id: str) -> Row:
        return await switch_to(call, trigger_id, paused=True)

    @route("POST", f"{path}/resume", "operator", resumes, returns=row, act=f"{act}resume", problems=(404,), of=of)
    async def resume(call: Call, trigger_id: str) -> Row:
        return await switch_to(call, trigger_id, paused=False)

    async def switch_to(call: Call, trigger_id: str, *, paused: bool) -> Row:
        await kind.find(call, trigger_id)
        found = await kind.store.switch(call.services, trigger_id, paused, call.act(trigger_id))
        if found is None:
            raise kind.missing(trigger_id)
        return await kind.row(call, found)

    @route("DELETE", path, remover, removes, returns=Removed, act=f"{act}delete", problems=(404, 409), of=of)
    async def remove(call: Call, trigger_id: str) -> Removed:
        await kind.find_own(call, trigger_id)
        if not await kind.store.remove(call.services, trigger_id, call.act(trigger_id)):
            raise kind.missing(trigger_id)
        return Removed(removed=1)


def id_of(trigger: Schedule | StoredTrigger) -> str:
    return trigger.schedule_id if isinstance(trigger, Schedule) else trigger.trigger_id


def store_of(kind: str) -> TriggerStore[StoredTrigger]:
    """Return the store of a kind of triggers other than schedules."""

    async def add(services: Services, made: StoredTrigger, act: Audit) -> bool:
        return await services.triggers.add(made, act)

    async def remove(services: Services, name: str, act: Audit) -> bool:
        return await services.triggers.remove(kind, name, act)

    return TriggerStore(
        lambda services, name: services.triggers.trigger(kind, name),
        lambda call, query: list_within(
            call.services.triggers, kind, query.path, query.cursor, query.limit, call.reach
        ),
        add,
        lambda services, name, paused, act: switch(services.triggers, kind, name, paused, services.clock.civil(), act),
        remove,
    )


def new_trigger(
    call: Call, kind: str, name: str, path: str, spec: Struct, *, paused: bool, version: int | None = None
) -> StoredTrigger:
    """Return a new trigger of the caller."""
    now, by = call.services.clock.civil(), call.actor.name
    return StoredTrigger(
        kind, name, path, to_builtins(spec), version, paused=paused, created_at=now, created_by=by, changed_at=now
    )


@contextmanager
def refusing(**names: str) -> Iterator[None]:
    """Refuse a body with a problem in its specification; `names` rename its fields."""
    try:
        yield
    except Problem as problem:
        where = f"$.{names.get(problem.field, problem.field)}"
        raise Refusal(422, "invalid-input", problem.what, where=where, fix=problem.fix) from None


async def find_playbook(call: Call, path: str, version: int | None) -> str:
    """Return the content hash of a playbook that the caller sees. Raises Refusal."""
    found = await call.services.lookups.content_hash(path, version) if call.sees(path) else None
    if found is None:
        which = f"version {version} of `{path}`" if version else f"`{path}`"
        near = await similar_path(call.services.store, path, call.reach)
        raise not_found(f"The catalog has no {which}.{near}", "Register it with POST /api/catalog first.")
    return found
