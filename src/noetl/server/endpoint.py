"""Routes as objects: each one declares its role, its body, its answer and its act, and is run in one place.

Authorisation, limits, decoding and errors are here, so no route can forget them; the OpenAPI document is made of the same
declarations. The audit trail is written by the change itself, in its transaction; a call that hands on nothing for it is
noted here. Tested in tests/server/test_matrix.py and test_audit.py.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar, get_type_hints

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from noetl.ports import AuditEntry
from noetl.server.auth import NOBODY, Actor, Role, forbidden, may, unauthorised
from noetl.server.limits import MOST_BYTES, body_of, decoded
from noetl.server.problems import Refusal, answer, invalid
from noetl.server.services import Services

Handler = Callable[..., Awaitable[Any]]
Made = TypeVar("Made", bound=Handler)
JSON = "application/json"


@dataclass(slots=True)
class Call:
    """One request on its way through a route."""

    request: Request
    services: Services
    actor: Actor = NOBODY
    action: str = ""  # what the audit trail calls it
    raw: bytes = b""
    is_noted: bool = False

    def act(self, entity: str, **detail: Any) -> AuditEntry:
        """Give what the audit trail is to say of this call, for whoever changes something to write down with it."""
        self.is_noted = True
        return AuditEntry(self.services.clock.now(), self.actor.name, self.action, entity, detail)


@dataclass(frozen=True)
class Endpoint:
    """A route: what it is called with, what it gives, and who may call it."""

    method: str
    path: str
    role: Role
    noun: str
    run: Handler
    summary: str
    status: int = 200
    act: str = ""  # what the audit trail calls it; every route that changes something has one, or is the worker's
    takes: str = JSON  # the media type of its body; where it is another, the route reads it
    gives: str = JSON
    most: int = MOST_BYTES
    example: Any = None  # of the body
    problems: tuple[int, ...] = ()

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        return get_type_hints(self.run, include_extras=True)

    @cached_property
    def body(self) -> Any:
        """The type of the body; None where there is none."""
        return self._hints.get("body")

    @cached_property
    def query(self) -> Any:
        return self._hints.get("query")

    @cached_property
    def gives_type(self) -> Any:
        found = self._hints.get("return")
        return None if found is None or found is Response else found

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Names of the parameters in the path."""
        known = list(inspect.signature(self.run).parameters)[1:]
        return tuple(name for name in known if name not in ("body", "query"))

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self.body)

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    def route(self, services: Services) -> Route:
        """Give the route that serves this on an application."""

        async def serve(request: Request) -> Response:
            call = Call(request, services, action=self.act)
            try:
                return await self._serve(call)
            except ClientDisconnect:
                return Response(status_code=499)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001  every trouble has an answer; a mistake of ours is logged there
                return answer(error, request.url.path)

        return Route(self.path, serve, methods=[self.method], name=self.name)

    async def _serve(self, call: Call) -> Response:
        request = call.request
        call.actor = await call.services.gate.who(request.headers.get("authorization"))
        if not may(call.actor, self.role):
            raise unauthorised("this needs a token") if call.actor is NOBODY else forbidden(call.actor, self.role)
        if self.method != "GET" and call.services.control.sequencer.unanswered >= call.services.bounds.most_unanswered:
            raise Refusal(
                429, "overloaded", "too many messages wait for their commit", fix="Try again soon.", retry_after_s=1.0
            )
        given: dict[str, Any] = {name: request.path_params[name] for name in self.places}
        if self.query is not None:
            given["query"] = _query(request, self.query)
        if self.body is not None:
            call.raw = await body_of(request, self.most)
            given["body"] = self._decoded(call)
        made = await self.run(call, **given)
        if self.act and not call.is_noted:
            await call.services.team.audit([call.act(next((str(given[name]) for name in self.places), ""))])
        if isinstance(made, Response):
            return made
        return Response(msgspec.json.encode(made), self.status, media_type=self.gives)

    def _decoded(self, call: Call) -> Any:
        kind = call.request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if kind not in ("", JSON) and not kind.endswith("+json"):
            raise Refusal(415, "media-type", f"the body is {kind}", where="header Content-Type", fix=f"Send {JSON}.")
        return decoded(call.raw or b"{}", self._decoder)


@cache
def _fields(kind: Any) -> Mapping[str, bool]:
    """Name the parameters of a query, and tell which may be given more than once."""
    fields = msgspec.structs.fields(kind)
    return {found.encode_name: getattr(found.type, "__origin__", None) is tuple for found in fields}


def _query(request: Request, kind: Any) -> Any:
    fields = _fields(kind)
    given: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        many = fields.get(name, False)
        if len(values) > 1 and not many:
            raise Refusal(
                400, "invalid-input", f"the parameter `{name}` is given more than once", where=f"query {name}"
            )
        given[name] = values if many else values[0]
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(error, "the query") from None


class Noun:
    """The routes of one noun, in order."""

    def __init__(self, name: str, about: str) -> None:
        self.name = name
        self.about = about
        self.endpoints: list[Endpoint] = []

    def route(self, method: str, path: str, role: Role, **more: Any) -> Callable[[Made], Made]:
        """Declare a route; the first line of the function's docstring is its summary."""

        def declare(run: Made) -> Made:
            summary = (run.__doc__ or "").strip().splitlines()[0]
            self.endpoints.append(Endpoint(method, path, role, self.name, run, summary, **more))
            return run

        return declare
