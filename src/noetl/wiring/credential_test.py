"""Test a credential: connect with it, and say what answered.

PostgreSQL, NATS and token servers are signed in to; of MySQL only the greeting is read, as there is no driver for it. Object
stores list a bucket, Snowflake answers a statement (with a key pair). Types of `http` request a URL. Everything goes through the egress rules of tasks, and no message holds a value. Tested in
tests/unit/wiring/test_credential_test.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from noetl.model.errors import CredentialUnavailable
from noetl.ports import Clock
from noetl.wire.answers import CredentialTested

if TYPE_CHECKING:
    from noetl.worker.http.clients import HttpClient
    from noetl.worker.http.egress import Egress
    from noetl.worker.secrets.managers.access import Access

_SECONDS: Final = 15.0
_MOST_LINE: Final = 65_536
_HTTP: Final = ("bearer", "basic", "api_key", "http")
Reached = tuple[bool | None, str, str]  # ok, what was reached, message


class CredentialTests:
    """Tests credentials, within the egress rules."""

    def __init__(self, rules: Egress | None, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock

    async def __call__(self, name: str, kind: str, data: Mapping[str, Any], url: str | None = None) -> CredentialTested:
        """Connect with a credential; a failure is an answer, never an exception."""
        from noetl.worker.http.clients import HttpClient
        from noetl.worker.secrets.redact import Secrets

        secrets, client = Secrets(), HttpClient(self._rules)
        secrets.learn(name, data)
        try:
            async with asyncio.timeout(_SECONDS):
                ok, reached, message = await _Connecting(client, self._rules, self._clock).test(kind, data, url)
        except TimeoutError:
            ok, reached, message = False, "", f"No answer within {_SECONDS:.0f} seconds. Check host and port."
        except CredentialUnavailable as error:
            ok, reached, message = False, "", str(error)
        except (PermissionError, OSError, ValueError) as error:
            ok, reached, message = False, "", f"Cannot connect: {error}"
        except Exception as error:  # noqa: BLE001 - its values are of any kind, and an error may quote them
            ok, reached, message = False, "", f"Cannot connect: {type(error).__name__}. Check the fields."
        finally:
            await client.close()
        return CredentialTested(name, kind, ok, secrets.text(reached), secrets.text(message))


class _Connecting:
    """One test: connects with a credential of any type."""

    def __init__(self, http: HttpClient, rules: Egress | None, clock: Clock) -> None:
        self._http = http
        self._rules = rules
        self._clock = clock
        self._tests: dict[str, Callable[[Mapping[str, Any]], Awaitable[Reached]]] = {
            "postgres": self._postgres,
            "mysql": self._mysql,
            "sqlite": self._sqlite,
            "oauth2": self._oauth2,
            "nats": self._nats,
            "service_account": self._service_account,
        }

    async def addresses(self, host: str, port: int) -> list[str] | None:
        """Return the addresses that the egress rules allow; None: all."""
        return None if self._rules is None else [str(one) for one in await self._rules.addresses(host, port)]

    async def test(self, kind: str, data: Mapping[str, Any], url: str | None) -> Reached:
        test = self._tests.get(kind)
        if test is not None:
            return await test(data)
        if kind in _HTTP:
            return await self._web(data, url or data.get("test_url"))
        if kind in ("s3", "gcs", "azure", "snowflake"):
            return await self._storage(kind, data, url)
        return None, "", f"A credential of type `{kind}` has nothing to connect to here; its fields are complete."

    async def _postgres(self, data: Mapping[str, Any]) -> Reached:
        from noetl.tools.sql.connections import pg_greeting

        place, user, database = await pg_greeting(data, self, int(_SECONDS))
        return True, place, f"Signed in as {user} to the database {database}."

    async def _mysql(self, data: Mapping[str, Any]) -> Reached:
        parts = urlsplit(str(data.get("dsn") or data.get("url") or ""))
        host, port = str(data.get("host") or parts.hostname or ""), int(data.get("port") or parts.port or 3306)
        reader, writer = await self._open(host, port)
        try:
            head = await reader.readexactly(5)
            version = (await reader.readuntil(b"\0"))[:-1].decode("ascii", "replace")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return False, "", f"{host}:{port} answers, but is no MySQL server."
        finally:
            await _close(writer)
        if head[4] != 10:
            return False, "", f"{host}:{port} answers, but is no MySQL server."
        return True, f"MySQL {version} at {host}:{port}", "The server answers; user and password were not tried."

    async def _oauth2(self, data: Mapping[str, Any]) -> Reached:
        from noetl.worker.secrets.oauth2 import Tokens, token_url
        from noetl.worker.secrets.redact import Secrets

        url = token_url(data)
        if url is None:
            return None, "", "The credential has no `token_url`; the playbook's `keychain` entry holds it."
        secrets = Secrets()
        secrets.learn("credential", data)
        token = await Tokens(self._http.get, self._clock, secrets.text).get(data)
        life = token.get("expires_in")
        return True, url, f"The server issued a token{f' for {life} seconds' if life is not None else ''}."

    def _access(self, data: Mapping[str, Any]) -> Access:
        """Return what gets access tokens, as for secret managers."""
        from noetl.worker.secrets.managers.access import Access
        from noetl.worker.secrets.oauth2 import Tokens
        from noetl.worker.secrets.redact import Secrets

        secrets = Secrets()
        secrets.learn("credential", data)
        tokens = Tokens(self._http.get, self._clock, secrets.text)
        return Access(self._http.get, tokens, self._clock.now, secrets.learn)

    async def _service_account(self, data: Mapping[str, Any]) -> Reached:
        from noetl.worker.secrets.managers.google import access_token, account_of

        account = account_of(data)
        if not account:
            return False, "", "The credential is no key file: it has no `client_email`."
        await access_token({**data, "token": None, "access_token": None}, self._access(data))
        return True, str(account.get("token_uri") or "Google"), f"It issued a token for {account['client_email']}."

    async def _storage(self, kind: str, data: Mapping[str, Any], url: str | None) -> Reached:
        from noetl.ports.web import WebError
        from noetl.worker.secrets import storage
        from noetl.worker.secrets.managers.azure import access_token, token_url

        lists = {"s3": storage.s3, "gcs": storage.gcs, "azure": storage.azure_blobs, "snowflake": storage.snowflake}
        access = self._access(data)
        listing = await lists[kind](data, access, url)
        if listing is None:
            await access_token({**data, "token": None, "access_token": None}, access, storage.AZURE_SCOPE)
            return True, token_url(data), "The server issued a token; without `account_name` nothing is listed."
        try:
            async with self._http.get(True).send(listing.request) as response:
                body = await response.read(_MOST_LINE) or b""
        except WebError as error:
            return False, "", f"Cannot connect: {error}"
        if not listing.signs_in:
            return None, listing.place, listing.proves
        if 200 <= response.status < 300:
            return True, listing.place, listing.proves
        code = storage.error_code(body)
        return False, listing.place, f"It answered {response.status}{f' {code}' if code else ''}. Check the keys."

    async def _web(self, data: Mapping[str, Any], url: Any) -> Reached:
        from noetl.ports.web import WebError, WebRequest
        from noetl.tools.http import signed_headers

        if not url:
            return None, "", "There is no URL to try. Add `test_url` to the credential, or use --url URL."
        request = WebRequest(url=str(url), headers=signed_headers(data), read_s=_SECONDS, follows=False)
        try:
            async with self._http.get(True).send(request) as response:
                answer, ok = f"GET answered {response.status} {response.reason}".rstrip(), response.status < 400
        except WebError as error:
            return False, "", f"Cannot connect: {error}"
        return ok, str(url), f"{answer}."

    async def _nats(self, data: Mapping[str, Any]) -> Reached:
        given = next((data[name] for name in ("url", "servers", "nats_url") if data.get(name)), "")
        first = str(given[0] if isinstance(given, list) else given).split(",")[0].strip()
        parts = urlsplit(first if "://" in first else f"nats://{first}")
        host, port = parts.hostname or "", parts.port or 4222
        if any(data.get(name) for name in ("credentials", "creds", "nkey_seed")):
            return None, "", "Signing in with an NKey cannot be tested here; its fields are complete."
        reader, writer = await self._open(host, port)
        try:
            return await _sign_in_to_nats(reader, writer, data, f"{host}:{port}")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return False, "", f"{host}:{port} closed the connection."
        finally:
            await _close(writer)

    async def _sqlite(self, data: Mapping[str, Any]) -> Reached:
        if self._rules is not None:
            return None, "", "A file of this machine is not opened for others; its fields are complete."
        return await _open_sqlite(data)

    async def _open(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        allowed = await self.addresses(host, port)
        return await asyncio.open_connection(host if allowed is None else allowed[0], port, limit=_MOST_LINE)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _sign_in_to_nats(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: Mapping[str, Any], place: str
) -> Reached:
    """Send CONNECT and PING after the server's INFO."""
    greeting = (await reader.readuntil(b"\n")).decode("utf-8", "replace")
    if not greeting.startswith("INFO "):
        return False, "", f"{place} answers, but is no NATS server."
    info = json.loads(greeting[5:])
    if info.get("tls_required"):
        return None, f"NATS {info.get('version', '')} at {place}", "The server requires TLS; signing in was not tried."
    options: dict[str, Any] = {"verbose": False, "pedantic": False, "lang": "python", "name": "noetl credential test"}
    user = next((data[name] for name in ("user", "username", "nats_user") if data.get(name)), None)
    password = next((data[name] for name in ("password", "nats_password") if data.get(name)), None)
    options |= {} if user is None else {"user": str(user), "pass": str(password or "")}
    options |= {"auth_token": str(data["token"])} if data.get("token") else {}
    writer.write(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
    await writer.drain()
    answer = (await reader.readuntil(b"\n")).decode("utf-8", "replace").strip()
    reached = f"NATS {info.get('version', '')} at {place}"
    if answer != "PONG":
        return False, reached, f"The server refused the sign-in: {answer.removeprefix('-ERR').strip()}"
    return True, reached, "Signed in."


async def _open_sqlite(data: Mapping[str, Any]) -> Reached:
    import sqlite3
    from pathlib import Path

    path = Path(str(next((data[name] for name in ("path", "database", "file") if data.get(name)), "")))

    def read() -> int:
        with sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True) as opened:
            return int(opened.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])

    try:
        tables = await asyncio.to_thread(read)
    except sqlite3.Error as error:
        return False, "", f"Cannot open {path}: {error}."
    return True, f"SQLite file {path}", f"It can be read and has {tables} tables and indexes."
