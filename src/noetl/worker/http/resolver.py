"""Names of hosts become addresses that the egress rules allow."""

from __future__ import annotations

import socket

from aiohttp.abc import AbstractResolver, ResolveResult

from noetl.worker.http.egress import Egress


class EgressResolver(AbstractResolver):
    """Resolver of aiohttp; the connection goes to an address that it returned."""

    def __init__(self, rules: Egress) -> None:
        self._rules = rules

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - addresses of both families are returned
    ) -> list[ResolveResult]:
        """Return the allowed addresses. Raises PermissionError and OSError."""
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in await self._rules.addresses(host, port)
        ]

    async def close(self) -> None:
        """Nothing is kept open."""
