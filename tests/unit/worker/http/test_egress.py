"""Hosts that requests may reach: names, networks, redirects, DNS rebinding."""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import ip_address
from typing import Any

import httpx
import pytest
import pytest_asyncio

from noetl.model.errors import InvalidInput
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


def client(clients: list[HttpClient], **rules: Any) -> Any:
    clients.append(HttpClient(Egress(**rules)))
    return clients[-1].get()


@pytest.mark.asyncio
async def test_private_addresses_are_denied_and_what_is_named_is_reached(web: Web, clients: list[HttpClient]) -> None:
    named = web.url.replace("127.0.0.1", "localhost")
    shut = client(clients, private=False)
    for url in (web.url, named, web.url.replace("127.0.0.1", "[::ffff:127.0.0.1]")):
        with pytest.raises(PermissionError, match="private addresses are denied"):
            await shut.get(url)
    assert web.asked == []
    opened = client(clients, private=False, allow=("localhost",))
    assert (await opened.get(named)).json() == {"n": 1}
    with pytest.raises(PermissionError, match="do not allow it"):
        await opened.get(web.url)


@pytest.mark.asyncio
async def test_a_redirect_is_judged_too(web: Web, clients: list[HttpClient]) -> None:
    web.headers["/away"] = {"Location": web.url + "/json"}
    opened = client(clients, allow=("localhost",))
    with pytest.raises(PermissionError):
        await opened.get(web.url.replace("127.0.0.1", "localhost") + "/away", follow_redirects=True)
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
    answer = await opened.get(web.url.replace("127.0.0.1", "rebound.example"))
    assert answer.status_code == 200
    assert web.asked[0].headers["host"].startswith("rebound.example:")


@pytest.mark.asyncio
async def test_a_name_that_is_none_is_a_failed_connection(clients: list[HttpClient]) -> None:
    with pytest.raises(httpx.ConnectError, match="cannot be resolved"):
        await client(clients, private=False).get("http://no-such-host.invalid/")
