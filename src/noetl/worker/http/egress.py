"""Egress rules: which hosts the worker may connect to for a task.

A name is resolved once, every address of it is checked, and the connection goes to an address that passed, so DNS
rebinding has no effect. Redirects are checked like first requests, because every connection is opened here. Databases
are checked by the same rules. Tested in tests/unit/worker/http/test_egress.py.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from noetl.model.errors import InvalidInput

Address = IPv4Address | IPv6Address
_IDLE_S = 5.0  # a connection without a request is kept for this long
_TRANSLATED = ip_network("64:ff9b::/96")  # IPv4 addresses as IPv6 networks see them
# Of one network, and not so for every version of `ipaddress`.
_LOCAL = tuple(map(ip_network, ("64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96", "fec0::/10", "192.0.0.0/24")))
_NAMED = "NOETL_EGRESS_PRIVATE names those that are allowed"


@dataclass(frozen=True, slots=True)
class Egress:
    """Egress rules: denied and allowed hosts (none named: all), private addresses.

    Private addresses are allowed, or only those that `allow` or `near` name.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    private: bool = True
    near: tuple[str, ...] = ()
    _networks: dict[str, IPv4Network | IPv6Network] = field(default_factory=dict, init=False, compare=False)

    def __post_init__(self) -> None:
        for entry in (*self.allow, *self.deny, *self.near):
            network = _network(entry)
            if network is not None:
                self._networks[entry] = network
            elif "/" in entry or ":" in entry or not entry.strip(".*"):
                raise InvalidInput(
                    f"{entry!r} is no host for egress: write a name such as api.example.com or *.example.com, "
                    "an address, or a network such as 10.0.0.0/8."
                )

    @property
    def is_open(self) -> bool:
        return not self.allow and not self.deny and self.private

    def refusal(self, host: str, address: Address) -> str | None:
        """Return why a host at an address must not be reached; None if it may."""
        if self._matches(self.deny, host, address):
            return "the egress rules deny it (NOETL_EGRESS_DENY)"
        near = is_private(address) and self._matches(self.near, host, address)
        named = near or self._matches(self.allow, host, address)
        if self.allow and not named:
            return "the egress rules do not allow it (NOETL_EGRESS_ALLOW)"
        if not self.private and not named and is_private(address):
            return f"private addresses are denied; {_NAMED}"
        return None

    async def addresses(self, host: str, port: int) -> list[Address]:
        """Return the allowed addresses of a host. Raises PermissionError and OSError."""
        refused = {address: self.refusal(host, address) for address in await resolve(host, port)}
        allowed = [address for address, why in refused.items() if why is None]
        if not allowed and refused:
            address, why = next(iter(refused.items()))
            place = host if str(address) == host else f"{host} ({address})"
            raise PermissionError(f"{place} must not be reached from here: {why}")
        return allowed

    def _matches(self, entries: Iterable[str], host: str, address: Address) -> bool:
        name = host.lower().rstrip(".")
        for entry in entries:
            network = self._networks.get(entry)
            if network is not None:
                if any(one.version == network.version and one in network for one in _faces(address)):
                    return True
            elif name == entry.lower() or (entry.startswith("*.") and name.endswith(entry[1:].lower())):
                return True
        return False


def _network(entry: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def _faces(address: Address) -> list[Address]:
    if isinstance(address, IPv4Address):
        return [address]
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address in _TRANSLATED:
        inner = IPv4Address(int(address) & 0xFFFFFFFF)
    return [address] if inner is None else [address, inner]


def is_private(address: Address) -> bool:
    """Return whether an address is local or private: not reached by the internet."""
    inner = _faces(address)[-1]
    local = any(inner.version == network.version and inner in network for network in _LOCAL)
    return local or not inner.is_global or inner.is_multicast


async def resolve(host: str, port: int) -> list[Address]:
    """Return the addresses of a host; raises OSError."""
    try:
        return [ip_address(host.strip("[]"))]
    except ValueError:
        pass
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


def guarded(rules: Egress, verify: Any) -> Any:
    """Return an httpx transport that checks every connection (PermissionError)."""
    import httpcore
    import httpx

    class Guarded(httpcore.AsyncNetworkBackend):
        """Network backend that connects only to addresses that passed."""

        def __init__(self) -> None:
            self._inner = httpcore.AnyIOBackend()

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Any = None,
        ) -> Any:
            try:
                async with asyncio.timeout(timeout):
                    allowed = await rules.addresses(host, port)
            except TimeoutError as error:
                raise httpcore.ConnectTimeout(f"{host} could not be resolved in time") from error
            except PermissionError:
                raise
            except OSError as error:
                raise httpcore.ConnectError(f"{host} cannot be resolved: {error.strerror or error}") from error
            for at, address in enumerate(allowed, 1):
                try:
                    return await self._inner.connect_tcp(str(address), port, timeout, local_address, socket_options)
                except httpcore.ConnectError:
                    if at == len(allowed):
                        raise
            raise AssertionError("unreachable")

        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(seconds)

    context = httpx.create_ssl_context(verify=verify)
    pool = httpcore.AsyncConnectionPool(
        ssl_context=context, max_connections=None, keepalive_expiry=_IDLE_S, network_backend=Guarded()
    )
    return _transport(pool)


def _transport(pool: Any) -> Any:
    """Return an httpx transport over httpcore, as httpx takes no network backend."""
    import httpcore
    import httpx

    @contextmanager
    def translated() -> Iterator[None]:
        try:
            yield
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise getattr(httpx, type(error).__name__)(str(error)) from error  # the same names in both

    class Body(httpx.AsyncByteStream):
        def __init__(self, parts: Any) -> None:
            self._parts = parts

        async def __aiter__(self) -> AsyncIterator[bytes]:
            with translated():
                async for part in self._parts:
                    yield part

        async def aclose(self) -> None:
            await self._parts.aclose()

    class Transport(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            place = request.url
            url = httpcore.URL(scheme=place.raw_scheme, host=place.raw_host, port=place.port, target=place.raw_path)
            headers, content, more = request.headers.raw, request.stream, request.extensions
            with translated():
                answer = await pool.handle_async_request(
                    httpcore.Request(request.method, url, headers=headers, content=content, extensions=more)
                )
            body = Body(answer.stream)
            return httpx.Response(answer.status, headers=answer.headers, stream=body, extensions=answer.extensions)

        async def aclose(self) -> None:
            await pool.aclose()

    return Transport()
