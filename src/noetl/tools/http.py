"""Kind `http`: one request and its response."""

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from noetl.blobs import pieces
from noetl.model.errors import CredentialUnavailable
from noetl.model.outcome import ErrorKind, Outcome, failed, ok
from noetl.ports import ToolContext
from noetl.ports.web import CONNECT_S, WebClient, WebError, WebRequest, WebResponse, basic
from noetl.tools.contract import ToolInput, about, describe
from noetl.tools.fields import excerpt, retry_after
from noetl.tools.sql.files import read_file

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
    verify: Annotated[
        bool | str,
        about("Verify the server's certificate; a string is a CA bundle file.", aliases=("verify_ssl",)),
    ] = True
    follow_redirects: Annotated[bool, about("Follow redirects.")] = True


KIND = describe(
    Input,
    name="http",
    summary="Send one HTTP request and read the response.",
    description="""
    Any status outside 200–299 is an error outcome, with the body in the result. `auth` names the credential: a token, a user
    with a password, or an API key, sent where the credential defines. `Idempotency-Key` is sent too, so a
    server can deduplicate retries, and `traceparent` with `tracestate` if the execution has a trace; a `traceresponse` in the
    answer becomes a link to the other side's span. `spec.timeout: {connect, read}` limits connecting and reading, in seconds.
    A `Retry-After` header is available as `outcome.error.retry_after`. A redirect to another host, port or scheme carries none of the task's
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
        "body": "Same as `data`, which is kept once.",
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
_KINDS: dict[int, ErrorKind] = {401: "auth", 403: "auth", 404: "not_found", 408: "timeout", 429: "rate_limit"}
_FLAGS = {"true": True, "false": False}  # a template in quotes gives text
_RETRYABLE = frozenset({408, 429})
_NOT_DONE = frozenset({408, 429, 503})  # the server did not process the request


async def run(input: Input, context: ToolContext) -> Outcome:
    outcome = await _send(input, context, None)
    if isinstance(context.auth, str) and outcome.error is not None and outcome.error.code == "HTTP_401":
        fresh = await context.renewed(context.auth)  # the token may be revoked; the request was not processed
        if fresh is not None:
            return await _send(input, context, fresh)
    return outcome


async def _client(verify: bool | str, context: ToolContext) -> WebClient:
    """Return the HTTP client for a way to verify certificates. Raises OSError."""
    if isinstance(verify, bool) or verify.lower() in _FLAGS:
        return context.web(verify if isinstance(verify, bool) else _FLAGS[verify.lower()])
    path = Path(context.folder, verify)
    async with context.thread() as thread:
        return context.web(await read_file(path, thread))  # a task uses only certificates that it may read


async def _send(input: Input, context: ToolContext, credential: Mapping[str, Any] | None) -> Outcome:
    try:
        client = await _client(input.verify, context)
    except OSError as error:
        return failed("client_error", f"cannot read the certificates in {input.verify}: {error}", code="HTTP_VERIFY")
    try:
        request = await _request(input, context, credential)
    except KeyError as error:
        return failed("auth", f"unknown credential {error}", code="NO_CREDENTIAL")
    except CredentialUnavailable as error:
        return failed("auth", str(error), retryable=error.retryable)
    try:
        async with client.send(request) as response:
            return await _outcome(response, context)
    except ValueError as error:
        return failed("client_error", f"invalid request: {error}", code="HTTP_REQUEST")
    except PermissionError as error:
        return failed("client_error", str(error), code="EGRESS_DENIED")
    except WebError as error:
        return _broken(error)


async def _request(input: Input, context: ToolContext, credential: Mapping[str, Any] | None) -> WebRequest:
    """Return the request. Raises KeyError for an unknown credential."""
    headers = await _headers(input, context, credential)
    content, kind = _body(input, headers)
    if kind and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = kind
    limits = context.spec.get("timeout")
    limits = limits if isinstance(limits, Mapping) else {}  # the time of the whole attempt is limited outside
    return WebRequest(
        method=input.method,
        url=input.url,
        params=_params(input.params),
        headers=headers,
        content=content,
        connect_s=_seconds(limits.get("connect")) or CONNECT_S,
        read_s=_seconds(limits.get("read")),
        follows=input.follow_redirects,
    )


def _params(given: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return query parameters: a list repeats its name, null omits it."""
    pairs: list[tuple[str, str]] = []
    for name, value in (given or {}).items():
        several = value if isinstance(value, list | tuple) else (value,)
        pairs += [(name, _text(one)) for one in several if one is not None]
    return pairs


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def _headers(input: Input, context: ToolContext, credential: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the headers, with the credential."""
    headers = {name: _text(value) for name, value in (input.headers or {}).items()}
    known = {name.lower(): name for name in headers}
    headers |= {name: value for name, value in context.trace.items() if name not in known}
    if "idempotency-key" not in known:
        headers["Idempotency-Key"] = context.idempotency_key
    if context.auth is None:
        return headers
    given = credential if credential is not None else context.auth
    owner = "" if isinstance(context.auth, Mapping) else str(context.auth)
    given = given if isinstance(given, Mapping) else await context.credential(owner)
    for name, value in signed_headers(given, owner).items():
        headers.pop(known.get(name.lower(), ""), None)
        headers[name] = value
    return headers


def signed_headers(credential: Mapping[str, Any], name: str = "") -> dict[str, str]:
    """Return the header of a credential: its token, its user or its key.

    Raises CredentialUnavailable if it has none of them, or one that is no text.
    """
    whose = f"the credential `{name}`" if name else "the credential in `auth`"
    token = _part(credential, whose, "token", "access_token", "bearer")
    user, password = _part(credential, whose, "username", "user"), _part(credential, whose, "password")
    key = _part(credential, whose, "api_key", "value")
    if token:
        return {"Authorization": f"{_part(credential, whose, 'scheme') or 'Bearer'} {token}"}
    if user:
        return {"Authorization": basic(user, password)}
    if key:
        return {_part(credential, whose, "header") or "X-API-Key": key}
    raise CredentialUnavailable(
        f"{whose} has no token, user or key to send. It needs `token`, `username` with `password`, or `api_key`."
    )


def _part(credential: Mapping[str, Any], whose: str, *names: str) -> str:
    """Return the first of these fields that is set, as a text; empty without any."""
    for name in names:
        value = credential.get(name)
        if value is not None and value != "":
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                return str(value)
            what = "a list" if isinstance(value, list | tuple) else "a map" if isinstance(value, Mapping) else "no text"
            raise CredentialUnavailable(f"`{name}` of {whose} is {what}. Store a text.")
    return ""


def _body(input: Input, headers: Mapping[str, str]) -> tuple[bytes | None, str]:
    """Return the body and its content type."""
    if input.form is not None:
        return _as_form({name: value for name, value in input.form.items() if value is not None})
    if input.json is not None:
        return _as_json(input.json)
    for value in (input.body, input.data):
        if isinstance(value, str):
            return value.encode(), ""
        if value is not None:
            form = any("form" in text for name, text in headers.items() if name.lower() == "content-type")
            return _as_form(value) if form and isinstance(value, Mapping) else _as_json(value)
    return None, ""


def _as_form(fields: Mapping[str, Any]) -> tuple[bytes, str]:
    return urlencode(_params(fields)).encode(), "application/x-www-form-urlencoded"


def _as_json(value: Any) -> tuple[bytes, str]:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), "application/json"


def _seconds(given: Any) -> float | None:
    return None if given is None else float(given)


async def _outcome(response: WebResponse, context: ToolContext) -> Outcome:
    content = await response.read(MOST_BYTES)
    code, helper = response.status, {"status": response.status, "headers": response.headers}
    if content is None:
        message = f"{_named(response)}: the response exceeds {MOST_BYTES:,} bytes; request less, or fetch it in parts"
        details = _details(response)
        return failed("client_error", message, code="HTTP_TOO_LARGE", details=details, sent=True, http={"status": code})
    data = await _data(content, response.headers.get("content-type", ""))
    result = {
        "status": code,
        "status_code": code,
        "headers": response.headers,
        "url": response.url,
        "elapsed": round(response.elapsed, 6),
        "data": data,
        "body": data,
    }
    if 200 <= code < 300:
        return ok(result, http=helper)
    kind = _KINDS.get(code, "server_error" if code >= 500 else "client_error")
    return failed(
        kind,
        f"{_named(response)} responded with {code} {response.reason}".rstrip(),
        code=f"HTTP_{code}",
        details={**_details(response), "status": code, "body": excerpt(content, context.masked)},
        retryable=code in _RETRYABLE or code >= 500,
        retry_after=retry_after(response.headers, context.now()),
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


def _named(about: WebResponse | WebError) -> str:
    """Return method and URL for people, without the query."""
    return f"{about.method} {about.url.partition('?')[0].partition('#')[0]}"


def _details(about: WebResponse | WebError) -> dict[str, Any]:
    return {"method": about.method, "url": about.url}


def _broken(error: WebError) -> Outcome:
    """Convert an unanswered request to an outcome; if connected, it may have acted."""
    return failed(
        "timeout" if error.timed_out else "connection",
        f"{_named(error)} failed: {error}",
        code=f"HTTP_{error.name}",
        details=_details(error),
        retryable=True,
        sent=error.sent,
    )
