"""Kind `http`: one request and its response."""

import json
import os
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from noetl.blobs import pieces
from noetl.model.outcome import ErrorKind, Outcome, failed, ok
from noetl.ports import ToolContext
from noetl.tools.contract import ToolInput, about, describe
from noetl.tools.fields import excerpt, retry_after
from noetl.tools.sql.files import read_file

if TYPE_CHECKING:
    import httpx

Plain = str | int | float | bool


class Input(ToolInput, frozen=True, kw_only=True):
    """One HTTP request."""

    method: Annotated[Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"], about("Request method.")] = (
        "GET"
    )
    url: Annotated[str, about("URL of the request.", "{{ workload.api_url }}/orders", aliases=("endpoint",))]
    params: Annotated[
        dict[str, Any] | None, about("Query parameters; a list repeats its name, null omits it.", {"page": 1})
    ] = None
    headers: Annotated[dict[str, Plain] | None, about("Request headers.", {"Accept": "application/json"})] = None
    body: Annotated[
        Any, about("Body: a map or list is sent as JSON, a string unchanged.", {"id": 7}, aliases=("payload",))
    ] = None
    json: Annotated[Any, about("Body, always sent as JSON.", {"id": 7})] = None
    data: Annotated[
        Any, about("Body: a string unchanged, a map as JSON unless the content type is a form.", "id=7")
    ] = None
    form: Annotated[dict[str, Any] | None, about("Body as form fields.", {"grant_type": "password"})] = None
    verify: Annotated[bool | str, about("Verify the server's certificate; a string is a CA bundle file.")] = True
    follow_redirects: Annotated[bool, about("Follow redirects.")] = True


KIND = describe(
    Input,
    name="http",
    summary="Send one HTTP request and read the response.",
    description="""
    Any status outside 200–299 is an error outcome, with the body in the result. `auth` names the credential: a token, a user
    with a password, or an API key, sent where the credential defines. `Idempotency-Key` is sent too, so a
    server can deduplicate retries. `spec.timeout: {connect, read}` limits connecting and reading, in seconds. A `Retry-After`
    header is available as `outcome.error.retry_after`. A redirect to another host, port or scheme carries none of the task's
    own headers and no credential. A response of more than 64 MiB is an error. `outcome.error.details` has
    the `method`, the `url` and, of a response, its `status` and the first lines of its `body`.
    """,
    at_most_one=(("body", "json", "data", "form"),),
    result={
        "status": "Status code; same as `status_code`.",
        "status_code": "Status code.",
        "headers": "Response headers, names in lower case.",
        "url": "URL of the response, after redirects.",
        "elapsed": "Seconds from sending the request to the complete response.",
        "data": "Body: parsed if it is JSON, else text.",
        "body": "Same as `data`.",
    },
    helper=("http", {"status": "Status code of the response.", "headers": "Response headers, names in lower case."}),
    examples="""
    # Fetch, and retry when the server is busy
    - fetch:
        kind: http
        method: GET
        url: "{{ workload.api_url }}/orders"
        params: { since: "{{ workload.since }}" }
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' and outcome.http.status in [429, 502, 503] }}"
                then: { do: retry, attempts: 5, backoff: exponential, delay: 2 }
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
              - else:
                  then: { do: continue }

    # Post JSON with a stored credential and keep part of the response
    - name: create_order
      kind: http
      method: POST
      endpoint: "{{ workload.api_url }}/orders"
      auth: orders_api
      json: { customer: "{{ workload.customer_id }}" }
      timeout: 10
      set:
        ctx.order_id: "{{ output.data.data.id }}"
    """,
)

MOST_BYTES = 64 * 1024 * 1024
CONNECT_S = 10  # default: an unresponsive host fails soon
_KINDS: dict[int, ErrorKind] = {401: "auth", 403: "auth", 404: "not_found", 408: "timeout", 429: "rate_limit"}
_RETRYABLE = frozenset({408, 429})
_NOT_DONE = frozenset({408, 429, 503})  # the server did not process the request
_NOT_SENT = ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "InvalidURL", "LocalProtocolError")


async def run(input: Input, context: ToolContext) -> Outcome:
    outcome = await _send(input, context, None)
    if isinstance(context.auth, str) and outcome.error is not None and outcome.error.code == "HTTP_401":
        fresh = await context.renewed(context.auth)  # the token may be revoked; the request was not processed
        if fresh is not None:
            return await _send(input, context, fresh)
    return outcome


async def _client(verify: bool | str, context: ToolContext) -> Any:
    """Return the HTTP client for a way to verify certificates. Raises OSError."""
    if isinstance(verify, bool):
        return context.web(verify)
    path = Path(context.folder, verify)
    async with context.thread() as thread:
        return context.web(await read_file(path, thread))  # a task uses only certificates that it may read


async def _send(input: Input, context: ToolContext, credential: Mapping[str, Any] | None) -> Outcome:
    import httpx

    try:
        client = await _client(input.verify, context)
    except OSError as error:
        return failed("client_error", f"cannot read the certificates in {input.verify}: {error}", code="HTTP_VERIFY")
    try:
        headers, signed = await _headers(input, context, credential)
        request = client.build_request(
            input.method,
            input.url,
            params=_params(input.params),
            headers=headers,
            timeout=_timeout(context.spec.get("timeout")),
            **_body(input, headers),
        )
    except KeyError as error:
        return failed("auth", f"unknown credential {error}", code="NO_CREDENTIAL")
    except (httpx.InvalidURL, TypeError, ValueError) as error:
        return failed("client_error", f"invalid request: {error}", code="HTTP_REQUEST")
    try:
        response = await client.send(request, stream=True, auth=signed, follow_redirects=input.follow_redirects)
        async with aclosing(response):
            return await _outcome(response, context)
    except PermissionError as error:
        return failed("client_error", str(error), code="EGRESS_DENIED")
    except httpx.HTTPError as error:
        return _broken(error, request)


def _params(given: Mapping[str, Any] | None) -> list[tuple[str, str]] | None:
    """Return query parameters: a list repeats its name, null omits it."""
    if given is None:
        return None
    pairs: list[tuple[str, str]] = []
    for name, value in given.items():
        several = value if isinstance(value, list | tuple) else (value,)
        pairs += [(name, _text(one)) for one in several if one is not None]
    return pairs


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def _headers(
    input: Input, context: ToolContext, credential: Mapping[str, Any] | None
) -> tuple[dict[str, str], Any]:
    """Return the headers with the credential, and its basic auth."""
    headers = {name: _text(value) for name, value in (input.headers or {}).items()}
    known = {name.lower() for name in headers}
    if "idempotency-key" not in known:
        headers["Idempotency-Key"] = context.idempotency_key
    if context.auth is None:
        return headers, None
    given = credential if credential is not None else context.auth
    given = given if isinstance(given, Mapping) else await context.credential(str(given))
    user, password = given.get("username") or given.get("user"), given.get("password")
    token = given.get("token") or given.get("access_token") or given.get("bearer")
    key = given.get("api_key") or given.get("value")
    if token is not None:
        headers["Authorization"] = f"{given.get('scheme', 'Bearer')} {token}"
    elif user is not None:
        return headers, (str(user), str(password or ""))
    elif key is not None:
        headers[str(given.get("header", "X-API-Key"))] = str(key)
    return headers, None


def _body(input: Input, headers: Mapping[str, str]) -> dict[str, Any]:
    typed = any(name.lower() == "content-type" for name in headers)
    if input.form is not None:
        return {"data": {name: _text(value) for name, value in input.form.items() if value is not None}}
    if input.json is not None:
        return _as_json(input.json, typed)
    for value in (input.body, input.data):
        if isinstance(value, str):
            return {"content": value.encode()}
        if value is not None:
            form = any("form" in text for name, text in headers.items() if name.lower() == "content-type")
            return {"data": value} if form and isinstance(value, Mapping) else _as_json(value, typed)
    return {}


def _as_json(value: Any, typed: bool) -> dict[str, Any]:
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return {"content": content} if typed else {"json": value}


def _timeout(given: Any) -> Any:
    """Return the connect and read time-outs; the attempt's own is enforced outside."""
    import httpx

    parts = given if isinstance(given, Mapping) else {}
    return httpx.Timeout(None, connect=_seconds(parts.get("connect")) or CONNECT_S, read=_seconds(parts.get("read")))


def _seconds(given: Any) -> float | None:
    return None if given is None else float(given)


async def _content(response: "httpx.Response") -> bytes | None:
    """Read the body incrementally; None if it exceeds the limit."""
    if response.headers.get("content-length", "").isdecimal() and int(response.headers["content-length"]) > MOST_BYTES:
        return None
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > MOST_BYTES:
            return None
    return bytes(content)


async def _outcome(response: "httpx.Response", context: ToolContext) -> Outcome:
    content = await _content(response)
    if content is None:
        message = (
            f"{_named(response.request)}: the response exceeds {MOST_BYTES:,} bytes; request less, or fetch it in parts"
        )
        details = _details(response.request)
        http = {"status": response.status_code}
        return failed("client_error", message, code="HTTP_TOO_LARGE", details=details, sent=True, http=http)
    headers = dict(response.headers.items())
    data = await _data(content, headers.get("content-type", ""))
    result = {
        "status": response.status_code,
        "status_code": response.status_code,
        "headers": headers,
        "url": str(response.url),
        "elapsed": round(response.elapsed.total_seconds(), 6) if response.is_closed else None,
        "data": data,
        "body": data,
    }
    helper = {"status": response.status_code, "headers": headers}
    if response.is_success:
        return ok(result, http=helper)
    code = response.status_code
    kind = _KINDS.get(code, "server_error" if code >= 500 else "client_error")
    retryable = code in _RETRYABLE or code >= 500
    message = f"{_named(response.request)} responded with {code} {response.reason_phrase}".rstrip()
    return failed(
        kind,
        message,
        code=f"HTTP_{code}",
        details={**_details(response.request), "status": code, "body": excerpt(content, context.masked)},
        retryable=retryable,
        retry_after=retry_after(headers, context.now()),
        sent=code not in _NOT_DONE,
        result=result,
        http=helper,
    )


async def _data(content: bytes, content_type: str) -> Any:
    """Convert the body to plain data: parsed JSON, text, or Base64."""
    if not content:
        return None
    named = re.search(r"charset=[\"']?([\w.:-]+)", content_type)
    try:
        text = content.decode("utf-8-sig" if named is None or named[1].lower() == "utf-8" else named[1])
    except (UnicodeDecodeError, LookupError):
        return b64encode(content).decode()
    looks_like = "json" in content_type or text.lstrip()[:1] in ("{", "[")
    if looks_like:
        try:
            return await pieces.decoded(text.encode(), _parse)
        except (ValueError, RecursionError):
            return text
    return text


def _parse(text: bytes) -> Any:
    return json.loads(text, parse_constant=_reject_constant, parse_int=_whole)


def _reject_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _whole(digits: str) -> int | str:
    """Return an integer, as a string if it exceeds 64 bits."""
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else digits


def _named(request: "httpx.Request") -> str:
    """Return method and URL for people, without user, password and query."""
    return f"{request.method} {request.url.copy_with(username=None, password=None, query=None, fragment=None)}"


def _details(request: "httpx.Request") -> dict[str, Any]:
    return {"method": request.method, "url": str(request.url.copy_with(username=None, password=None))}


def _broken(error: "httpx.HTTPError", request: "httpx.Request") -> Outcome:
    """Convert an unanswered request to an outcome; if connected, it may have acted."""
    import httpx

    name = type(error).__name__
    timed_out = isinstance(error, httpx.TimeoutException)
    with suppress(RuntimeError):
        request = error.request  # after a redirect, another one
    return failed(
        "timeout" if timed_out else "connection",
        f"{_named(request)} failed: {_reason(error, request.url.host)}",
        code=f"HTTP_{name}",
        details=_details(request),
        retryable=True,
        sent=name not in _NOT_SENT,
    )


def _reason(error: "httpx.HTTPError", host: str) -> str:
    """Return why a request has no response: the client's cause, if it has one."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, socket.gaierror):
            return f"cannot resolve the host name {host}: {found.strerror}"
        if isinstance(found, OSError) and found.errno and not isinstance(found, ssl.SSLError):
            return os.strerror(found.errno)
        inner = found.exceptions[0] if isinstance(found, BaseExceptionGroup) else None
        found = inner or found.__cause__ or found.__context__
    return str(error) or type(error).__name__
