"""Endpoints: each route declares its role, body, answer and audit action, and is run in one place.

Authorisation, limits, decoding and errors are handled here, so no route can forget them; the OpenAPI document is generated
from the same declarations. A change writes its own audit entry, in its transaction; for a call that has written none, the
entry is added here. Tested in tests/server/test_matrix.py and test_audit.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar, get_type_hints

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from noetl.ports import AuditEntry
from noetl.server.auth import NOBODY, Actor, Role, forbidden, may, unauthorised
from noetl.server.limits import MOST_BYTES, body_of, decoded
from noetl.server.problems import Refusal, answer, invalid
from noetl.server.services import Services

Handler = Callable[..., Awaitable[Any]]
Made = TypeVar("Made", bound=Handler)
JSON = "application/json"
_encode = msgspec.json.Encoder().encode


class Call(msgspec.Struct, eq=False):
    """One request on its way through a route."""

    scope: Scope
    receive: Receive
    services: Services
    headers: Mapping[bytes, bytes]
    parameters: Mapping[str, str]  # of its path
    actor: Actor = NOBODY
    action: str = ""  # what the audit trail calls it
    is_noted: bool = False

    def header(self, name: bytes) -> str:
        """Give what a header says, by its name in small letters; empty where there is none."""
        return self.headers.get(name, b"").decode("latin-1")

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

    def app(self, services: Services) -> ASGIApp:
        """Return the ASGI application that serves this route."""
        headers = [one for one in Response(media_type=self.gives).raw_headers if one[0] != b"content-length"]

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            call = Call(scope, receive, services, headers_of(scope), scope["path_params"])
            result = await self.answered(call)
            if isinstance(result, Response):
                await result(scope, receive, send)
                return
            length = (b"content-length", b"%d" % len(result))
            await send({"type": "http.response.start", "status": self.status, "headers": [length, *headers]})
            await send({"type": "http.response.body", "body": result})

        return serve

    async def answered(self, call: Call) -> Response | bytes:
        """Answer a request: with a response, or with the body of one that has this route's status and media type."""
        try:
            services = call.services
            gate = services.gate
            actor = call.actor = gate.everybody or await gate.who(call.header(b"authorization"))
            call.action = self.act
            if not may(actor, self.role):
                raise unauthorised("this needs a token") if actor is NOBODY else forbidden(actor, self.role)
            if self.method != "GET" and services.control.sequencer.unanswered >= services.bounds.most_unanswered:
                raise _overloaded()
            given: dict[str, Any] = {name: call.parameters[name] for name in self.places} if self.places else {}
            if self.query is not None:
                given["query"] = _query(call.scope["query_string"], self.query)
            if self.body is not None:
                given["body"] = self._decoded(call, await body_of(call.headers, call.receive, self.most))
            made = await self.run(call, **given)
            if self.act and not call.is_noted:
                await services.team.audit([call.act(next((str(given[name]) for name in self.places), ""))])
            return made if isinstance(made, Response) else _encode(made)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # noqa: BLE001  every trouble has an answer; a mistake of ours is logged there
            return answer(error, call.scope["path"])

    def _decoded(self, call: Call, body: bytes) -> Any:
        kind = call.header(b"content-type")
        if kind not in ("", JSON):
            kind = kind.partition(";")[0].strip().lower()
            if kind not in ("", JSON) and not kind.endswith("+json"):
                raise Refusal(
                    415, "media-type", f"the body is {kind}", where="header Content-Type", fix=f"Send {JSON}."
                )
        return decoded(body or b"{}", self._decoder)


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Give the headers of a request by their names; of one that is sent twice, the first."""
    return dict(reversed(scope["headers"]))


def _overloaded() -> Refusal:
    said = "too many messages wait for their commit"
    return Refusal(429, "overloaded", said, fix="Try again soon.", retry_after_s=1.0)


@cache
def _fields(kind: Any) -> Mapping[str, bool]:
    """Name the parameters of a query, and tell which may be given more than once."""
    fields = msgspec.structs.fields(kind)
    return {found.encode_name: getattr(found.type, "__origin__", None) is tuple for found in fields}


def _query(text: bytes, kind: Any) -> Any:
    fields = _fields(kind)
    given: dict[str, Any] = {}
    params = QueryParams(text)
    for name in params:
        values = params.getlist(name)
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
