"""Endpoints: routes with their role, body, answer and audit action.

Authorisation, limits, decoding and errors are handled here, so no route can forget them; the OpenAPI document is generated
from the same declarations. A change writes its own audit entry, in its transaction; for a call that has written none, the
entry is added here. Tested in tests/server/api/test_matrix.py and test_audit.py.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from hmac import compare_digest
from typing import Any, Literal, TypeVar, get_origin, get_type_hints

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from noetl.ports import AuditEntry
from noetl.server.auth.gate import NOBODY, Actor, Role, may, reach, refusal
from noetl.server.auth.namespaces import Reach, is_within
from noetl.server.feeds.reader import unknown_execution
from noetl.server.http.limits import MOST_BYTES, decode_json, read_body
from noetl.server.http.pieces import SLICE, Pieces, of_bytes
from noetl.server.problems import Refusal, invalid_input, problem_response
from noetl.server.services import Services

Handler = Callable[..., Awaitable[Any]]
Made = TypeVar("Made", bound=Handler)
JSON = "application/json"
CSRF = b"x-csrf-token"
_MOST_KEY = 200
_encode = msgspec.json.Encoder().encode


class Call(msgspec.Struct, eq=False):
    """One request to a route."""

    scope: Scope
    receive: Receive
    services: Services
    headers: Mapping[bytes, bytes]
    parameters: Mapping[str, str]  # of the path
    actor: Actor = NOBODY
    action: str = ""  # its name in the audit trail
    is_noted: bool = False  # an audit entry exists, or nothing changes
    role: Role = "open"  # of the route
    reach: Reach = None  # namespaces in which the caller has the role of the route; None: everywhere
    path: str = ""  # catalog path of the object, once it is known to be within reach

    def header(self, name: bytes) -> str:
        """Return a header by its lower-case name, or an empty text."""
        return self.headers.get(name, b"").decode("latin-1")

    def require(self, role: Role) -> None:
        """Check the role of the caller, for the object if it is known. Raises Refusal."""
        if not may(self.actor, role) or (self.path and not is_within(self.path, reach(self.actor, role))):
            raise refusal(self.actor, role)

    def sees(self, path: str) -> bool:
        """Return whether an object with this catalog path exists for the caller.

        Raises Refusal if the caller may read it, but not do this.
        """
        if not is_within(path, self.reach):
            if is_within(path, reach(self.actor, "viewer")):
                raise refusal(self.actor, self.role)
            return False
        self.path = path
        return True

    async def find_execution(self, execution_id: str) -> None:
        """Check that an execution exists for the caller. Raises UnknownExecution."""
        if self.reach is not None:
            row = await self.services.reader.row(execution_id)
            if not self.sees(str(row.get("path", ""))):
                raise unknown_execution(execution_id)

    def idempotency_key(self) -> str:
        """Return the idempotency key, or an empty text. Raises Refusal."""
        key = self.header(b"idempotency-key")
        if len(key) > _MOST_KEY:
            raise Refusal(
                400,
                "invalid-input",
                f"The idempotency key is longer than {_MOST_KEY} characters.",
                where="header Idempotency-Key",
                fix="Send a shorter key.",
            )
        return key

    def skip_audit(self) -> None:
        """Write no entry for this call: it changes nothing, or others note what it does."""
        self.is_noted = True

    def act(self, entity: str, *, was: str = "", is_now: str = "", **detail: Any) -> AuditEntry:
        """Return the audit entry of this call, to be committed together with the change.

        `was` and `is_now` refer to the object before and after it, where the store does not know better.
        """
        self.is_noted = True
        now = self.services.clock.now()
        return AuditEntry(now, self.actor.name, self.action, entity, detail, before=was, after=is_now)


@dataclass(frozen=True)
class Endpoint:
    """A route: its role, what it takes and what it returns."""

    method: str
    path: str
    role: Role
    noun: str
    run: Handler
    summary: str
    status: int = 200
    act: str = ""  # its name in the audit trail; required of routes that change something, except those of workers
    takes: str = JSON  # the media type of the body; the route itself reads any other
    gives: str = JSON
    most: int = MOST_BYTES
    example: Any = None  # of the body
    problems: tuple[int, ...] = ()
    is_plain: bool = False  # its answer is not masked: a document as it was registered, or a secret that is shown once
    is_public: bool = False  # authenticates its callers itself; no token counts
    # What its objects belong to: `execution`, checked here; `path`, checked by the route with `Call.sees` or in its query; or
    # nothing, so that a role on a namespace is not enough.
    of: Literal["", "execution", "path"] = ""
    returns: Any = None  # type of the answer, where the annotation of `run` is general

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        return get_type_hints(self.run, include_extras=True)

    @cached_property
    def body(self) -> Any:
        """Type of the body, or None."""
        return self._hints.get("body")

    @cached_property
    def query(self) -> Any:
        return self._hints.get("query")

    @cached_property
    def gives_type(self) -> Any:
        hint = self.returns or self._hints.get("return")
        return None if hint is None or hint is Response else hint

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Names of the parameters in the path."""
        return tuple(re.findall(r"{(\w+)", self.path))

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
            result = await self.answer(call)
            if isinstance(result, Pieces):
                with suppress(Refusal), services.gate.valid(call.actor):  # a download breaks off with its token
                    await result(scope, receive, send)
                return
            if isinstance(result, Response):
                await result(scope, receive, send)
                return
            length = (b"content-length", b"%d" % len(result))
            await send({"type": "http.response.start", "status": self.status, "headers": [length, *headers]})
            await send({"type": "http.response.body", "body": result})

        return serve

    async def answer(self, call: Call) -> Response | bytes:
        """Run the route; return a response, or the body of a successful one."""
        try:
            services = call.services
            if not self.is_public:
                call.actor = await services.gate.who(call.headers, address_of(call.scope))
            call.action = self.act
            call.require(self.role)
            call.role, call.reach = self.role, reach(call.actor, self.role)
            if call.actor.csrf and self.method != "GET":
                _check_csrf(call)
            if not self.of and call.reach is not None:
                raise refusal(call.actor, self.role)
            if self.method != "GET" and services.control.sequencer.unanswered >= services.bounds.most_unanswered:
                raise _overloaded()
            places = [call.parameters[name] for name in self.places]
            arguments: dict[str, Any] = {}
            if self.query is not None:
                arguments["query"] = _parse_query(call.scope["query_string"], self.query)
            if self.body is not None:
                with services.gate.valid(call.actor):
                    body = await read_body(call.headers, call.receive, services.bounds.http.body_s, self.most)
                arguments["body"] = self._decode(call, body)
            if self.of == "execution":
                await call.find_execution(call.parameters["execution_id"])
            result = await self.run(call, *places, **arguments)
            if self.act and not call.is_noted:
                await services.team.audit([call.act(next(iter(places), ""))])
            if isinstance(result, Response):
                return result
            data = _encode(result) if self.is_plain or self.role == "worker" else await services.mask.answer(result)
            if len(data) <= SLICE:
                return data
            take = services.answers.take if self.method == "GET" else services.answers.count  # a change is made
            release = take(call.actor, len(data))
            return Pieces(of_bytes(data), release, self.status, None, self.gives, len(data))
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # noqa: BLE001  every error has an answer; unexpected ones are logged there
            return problem_response(error, call.scope["path"])

    def _decode(self, call: Call, body: bytes) -> Any:
        kind = call.header(b"content-type")
        if kind not in ("", JSON):
            kind = kind.partition(";")[0].strip().lower()
            if kind not in ("", JSON) and not kind.endswith("+json"):
                raise Refusal(
                    415, "media-type", f"The body is {kind}.", where="header Content-Type", fix=f"Send {JSON}."
                )
        return decode_json(body or b"{}", self._decoder)


def _check_csrf(call: Call) -> None:
    """Refuse a change by a cookie alone: a page of another site may have sent it."""
    if not compare_digest(call.headers.get(CSRF, b""), call.actor.csrf.encode()):
        raise Refusal(
            403,
            "csrf",
            "A change with a session cookie must send the CSRF token of the session.",
            where="header X-CSRF-Token",
            fix="Send the `csrf` of GET /api/me in this header.",
        )


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers of a request by lower-case name; of repeated ones, the first."""
    return dict(reversed(scope["headers"]))


def address_of(scope: Scope) -> str:
    """Return the network address of the other side; headers of proxies do not count."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _overloaded() -> Refusal:
    detail = "Too many messages are waiting for a commit."
    return Refusal(429, "overloaded", detail, fix="Try again soon.", retry_after_s=1.0)


@cache
def _fields(kind: Any) -> Mapping[str, bool]:
    return {field.encode_name: get_origin(field.type) is tuple for field in msgspec.structs.fields(kind)}


def _parse_query(text: bytes, kind: Any) -> Any:
    fields = _fields(kind)
    values: dict[str, Any] = {}
    params = QueryParams(text)
    for name in params:
        found = params.getlist(name)
        is_repeatable = fields.get(name, False)
        if len(found) > 1 and not is_repeatable:
            raise Refusal(
                400,
                "invalid-input",
                f"The parameter `{name}` is given more than once.",
                where=f"query {name}",
                fix="Send it once.",
            )
        values[name] = found if is_repeatable else found[0]
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise invalid_input(error, "The query") from None


class Noun:
    """The routes of one noun of the API."""

    def __init__(self, name: str, about: str) -> None:
        self.name = name
        self.about = about
        self.endpoints: list[Endpoint] = []

    def route(self, method: str, path: str, role: Role, summary: str = "", **more: Any) -> Callable[[Made], Made]:
        """Declare a route; its summary is by default the first line of the docstring."""

        def declare(run: Made) -> Made:
            about = summary or (run.__doc__ or "").strip().splitlines()[0]
            self.endpoints.append(Endpoint(method, path, role, self.name, run, about, **more))
            return run

        return declare
