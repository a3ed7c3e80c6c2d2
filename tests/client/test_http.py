"""Connections of the HTTP client that end before a request is sent."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from threading import Thread

import pytest
import uvloop

from noetl.client.http import Http, Servers
from noetl.model.errors import Unreachable

RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 seconds: close with a reset


@pytest.fixture
def resetting() -> Iterator[str]:
    """Yield the address of a server that resets every connection as it opens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:  # the listener was shut down
                    return
                with connection:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

        thread = Thread(target=accept)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_connection_that_is_reset_as_it_opens_is_an_unreachable_server(resetting: str) -> None:
    async def send() -> None:
        http = Http(Servers([resetting]))
        try:
            for _ in range(50):  # the reset has to come before the loop runs the client again
                with pytest.raises(Unreachable):
                    await http.send("GET", "/api/me")
                with pytest.raises(Unreachable):
                    async with http.stream("/api/events", None, {}):
                        pass
        finally:
            await http.close()

    uvloop.run(send())


@pytest.mark.parametrize(("urls", "have"), [(["http://a:1", "http://b"], False), (["http://a:1", "HTTPS://b"], True)])
def test_certificates_are_read_where_a_server_has_one(urls: list[str], have: bool) -> None:
    assert Servers(urls).have_tls is have


def test_certificates_are_read_for_a_proxy_that_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "https://proxy.example:3128")
    assert Servers(["http://a:1"]).have_tls
