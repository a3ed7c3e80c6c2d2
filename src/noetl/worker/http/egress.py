"""Egress rules: which hosts the worker may connect to for a task.

A name is resolved once, every address of it is checked, and the connection goes to an address that passed, so DNS
rebinding has no effect. Redirects are checked like first requests. Databases are checked by the same rules. Tested in
tests/unit/worker/http/test_egress.py.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from noetl.model.errors import InvalidInput

Address = IPv4Address | IPv6Address
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
        return self._allowed(host, await resolve(host, port))

    def check_address(self, host: str) -> None:
        """Check a host that is an address. Raises PermissionError."""
        address = _address(host)
        if address is not None:
            self._allowed(host, [address])

    def _allowed(self, host: str, found: Iterable[Address]) -> list[Address]:
        refused = {address: self.refusal(host, address) for address in found}
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


def _address(host: str) -> Address | None:
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


async def resolve(host: str, port: int) -> list[Address]:
    """Return the addresses of a host; raises OSError."""
    address = _address(host)
    if address is not None:
        return [address]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))
