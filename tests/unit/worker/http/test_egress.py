"""Hosts that requests may reach: names, networks, redirects, DNS rebinding."""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import ip_address
from typing import Any

import pytest
import pytest_asyncio

from noetl.model.errors import InvalidInput
from noetl.ports.web import WebClient, WebError, WebRequest
from noetl.worker.http import egress
from noetl.worker.http.clients import HttpClient
from noetl.worker.http.egress import Egress, is_private
from tests.tools.web import Web


@pytest.mark.parametrize(
    ("rules", "host", "address", "allowed"),
    [
        (Egress(), "x", "10.0.0.1", True),
        (Egress(private=False), "x", "10.0.0.1", False),
        (Egress(private=False), "x", "93.184.216.34", True),
        (Egress(private=False, allow=("10.0.0.0/24",)), "x", "10.0.0.1", True),
        (Egress(private=False, allow=("db.internal",)), "DB.internal.", "10.0.0.1", True),
        (Egress(private=False, near=("10.0.0.0/24",)), "x", "10.0.0.1", True),
        (Egress(private=False, near=("10.0.0.0/24",)), "x", "10.0.1.1", False),
        (Egress(private=False, near=("10.0.0.0/24",)), "x", "93.184.216.34", True),
        (Egress(private=False, near=("db.internal",), allow=("example.com",)), "db.internal", "10.0.0.1", True),
        (Egress(private=False, near=("example.com",), allow=("example.org",)), "example.com", "93.184.216.34", False),
        (Egress(allow=("*.example.com",)), "api.example.com", "93.184.216.34", True),
        (Egress(allow=("*.example.com",)), "example.com.evil.org", "93.184.216.34", False),
        (Egress(allow=("*.example.com",)), "notexample.com", "93.184.216.34", False),
        (Egress(allow=("example.com",), deny=("93.184.216.0/24",)), "example.com", "93.184.216.34", False),
        (Egress(deny=("169.254.169.254",)), "meta", "169.254.169.254", False),
        (Egress(deny=("169.254.169.254",)), "meta", "::ffff:169.254.169.254", False),
        (Egress(deny=("evil.org",)), "good.org", "1.1.1.1", True),
    ],
)
def test_the_rules(rules: Egress, host: str, address: str, allowed: bool) -> None:
    assert (rules.refusal(host, ip_address(address)) is None) is allowed


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1", "::1",
     "fe80::1", "fc00::1", "::", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::", "::127.0.0.1", "fec0::1",
     "64:ff9b:1::a00:1", "::ffff:0:10.0.0.1", "fd00:ec2::254", "192.0.0.192", "198.18.0.1", "240.0.0.1", "255.255.255.255"],
)  # fmt: skip
def test_private_addresses_in_all_their_spellings(address: str) -> None:
    assert is_private(ip_address(address))


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses(address: str) -> None:
    assert not is_private(ip_address(address))


@pytest.mark.parametrize("entry", ["http://x.org", "x.org:80", "10.0.0.0/99", "*"])
def test_what_is_no_host_is_refused_with_what_to_write(entry: str) -> None:
    with pytest.raises(InvalidInput, match="write a name such as"):
        Egress(allow=(entry,))


@pytest_asyncio.fixture
async def clients() -> AsyncIterator[list[HttpClient]]:
    made: list[HttpClient] = []
    yield made
    for client in made:
        await client.close()


def client(clients: list[HttpClient], **rules: Any) -> WebClient:
    clients.append(HttpClient(Egress(**rules)))
    return clients[-1].get()


async def get(client: WebClient, url: str) -> tuple[int, bytes | None]:
    async with client.send(WebRequest(url=url)) as response:
        return response.status, await response.read(1_000_000)


# Spellings of 127.0.0.1, which must not be reached where private addresses are denied.
LOOPBACK = (
    *("127.0.0.1", "localhost", "LOCALHOST", "localhost.", "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1"),
    *("0177.0.0.1", "127.000.000.001", "0", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]"),
    *(
        "[0:0:0:0:0:0:0:1]",
        "[::1%25lo]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "１２７.0.0.1",
        "127。0。0。1",
        "%31%32%37.0.0.1",
    ),
    *("user@127.0.0.1", "example.com@127.0.0.1", "example.com:80@localhost", "ip6-localhost"),
)


@pytest.mark.asyncio
@pytest.mark.parametrize("spelling", LOOPBACK)
async def test_no_spelling_of_a_private_address_is_reached(web: Web, clients: list[HttpClient], spelling: str) -> None:
    shut = client(clients, private=False)
    port = web.url.rpartition(":")[2]
    web.headers["/away"] = {"Location": f"http://{spelling}:{port}/json"}
    with pytest.raises((PermissionError, ValueError, WebError)):
        await get(shut, f"http://{spelling}:{port}/json")
    assert web.asked == []
    opened = client(clients, private=False, allow=("127.0.0.0/30",), deny=("127.0.0.1",))
    with pytest.raises((PermissionError, ValueError, WebError)):
        await get(opened, f"http://{spelling}:{port}/json")
    named = client(clients, private=False, near=("here.example",))
    named_at = {"here.example": "127.0.0.1"}

    async def resolve(host: str, port: int) -> Any:
        return [ip_address(named_at[host])] if host in named_at else await REAL(host, port)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(egress, "resolve", resolve)
        with pytest.raises((PermissionError, ValueError, WebError)):
            await get(named, f"http://here.example:{port}/away")
    assert [asked.path for asked in web.asked] == ["/away"]


REAL = egress.resolve


@pytest.mark.asyncio
async def test_private_addresses_are_denied_and_what_is_named_is_reached(web: Web, clients: list[HttpClient]) -> None:
    named = web.url.replace("127.0.0.1", "localhost")
    shut = client(clients, private=False)
    for url in (web.url, named, web.url.replace("127.0.0.1", "[::ffff:127.0.0.1]")):
        with pytest.raises(PermissionError, match="private addresses are denied"):
            await get(shut, url)
    assert web.asked == []
    opened = client(clients, private=False, allow=("localhost",))
    assert await get(opened, named) == (200, b'{"n": 1}')
    with pytest.raises(PermissionError, match="do not allow it"):
        await get(opened, web.url)


@pytest.mark.asyncio
async def test_a_redirect_is_judged_too(web: Web, clients: list[HttpClient]) -> None:
    web.headers["/away"] = {"Location": web.url + "/json"}
    opened = client(clients, allow=("localhost",))
    with pytest.raises(PermissionError):
        await get(opened, web.url.replace("127.0.0.1", "localhost") + "/away")
    assert [asked.path for asked in web.asked] == ["/away"]


@pytest.mark.asyncio
async def test_the_connection_goes_to_the_address_that_was_judged(
    web: Web, clients: list[HttpClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([[ip_address("127.0.0.1")], [ip_address("10.255.255.1")]])  # a second look would go elsewhere

    async def resolve(host: str, port: int) -> Any:
        return next(answers)

    monkeypatch.setattr(egress, "resolve", resolve)
    opened = client(clients, allow=("rebound.example",))
    status, _ = await get(opened, web.url.replace("127.0.0.1", "rebound.example"))
    assert status == 200
    assert web.asked[0].headers["host"].startswith("rebound.example:")


@pytest.mark.asyncio
async def test_of_several_addresses_only_allowed_ones_are_tried(
    web: Web, clients: list[HttpClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(host: str, port: int) -> Any:
        return list(map(ip_address, ("127.0.0.2", "127.0.0.1")))

    monkeypatch.setattr(egress, "resolve", resolve)
    opened = client(clients, allow=("127.0.0.1",))
    assert (await get(opened, web.url.replace("127.0.0.1", "two.example")))[0] == 200


@pytest.mark.asyncio
async def test_a_name_that_is_none_is_a_failed_connection(clients: list[HttpClient]) -> None:
    with pytest.raises(WebError, match="cannot resolve the host name") as caught:
        await get(client(clients, private=False), "http://no-such-host.invalid/")
    assert (caught.value.name, caught.value.sent) == ("ConnectError", False)


@pytest.mark.asyncio
async def test_rules_have_no_proxy(web: Web, clients: list[HttpClient], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, web.url)
    with pytest.raises(PermissionError):
        await get(client(clients, private=False), "http://10.0.0.1/x")
    assert web.asked == []
