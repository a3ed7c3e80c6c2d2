"""`noetl lsp`: run the language server for editors over stdio or a local port.

The server is `noetl.lsp`; its library is an extra. Exit code 0: shut down by the editor; 1: the editor disconnected; 2: the
arguments are wrong or the extra is missing. Tested in tests/acceptance/language/test_lsp.py.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from noetl.cli.runtime.terminal import echo

if TYPE_CHECKING:
    from noetl.testing.cases.files.read import TestFile


def command(
    tcp: Annotated[
        str, typer.Option("--tcp", metavar="HOST:PORT", help="Listen on a local port for one editor. [default: stdio]")
    ] = "",
) -> None:
    """Run the language server for editors."""
    import logging
    import signal
    import sys

    address = _address(tcp) if tcp else None
    try:
        from noetl.lsp.server import PlaybookServer, without_refusals
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        from noetl.extras import install_command

        _fail(f"The language server needs pygls, which is not installed. Run `{install_command('lsp')}`.")
    from noetl.wiring.embedded import language_kinds

    # stdout carries the protocol; messages go to stderr.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="noetl lsp: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(without_refusals)
    # A thread blocks on input and cannot be interrupted, so Ctrl-C kills the process; it has no state to save.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server = PlaybookServer(language_kinds(), _catalog, _tests)
    if address is None:
        server.start_io()
    else:
        logging.getLogger("pygls.server").setLevel(logging.INFO)
        try:
            server.start_tcp(*address)
        except OSError as error:
            _fail(f"Cannot listen on {tcp}: {error.strerror or error}. Choose another port.")
    raise typer.Exit(0 if server.was_shut_down else 1)


def _address(tcp: str) -> tuple[str, int]:
    """Parse HOST:PORT; only loopback, because there is no authentication."""
    from ipaddress import ip_address

    host, colon, port = tcp.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not colon or not port.isdigit() or int(port) > 65535:
        _fail(f"--tcp takes HOST:PORT, such as 127.0.0.1:7878, not '{tcp}'.")
    try:
        is_local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        _fail(f"--tcp listens on this machine only, and '{host}' is not a loopback address. Use 127.0.0.1.")
    return host, int(port)


def _catalog(uri: str) -> Collection[str] | None:
    from pygls.uris import to_fs_path

    from noetl.cli.playbooks.disk_catalog import DiskCatalog

    path = to_fs_path(uri)
    return DiskCatalog(Path.cwd(), Path(path).parent) if path and Path(path).is_absolute() else None


def _tests(uri: str, text: str) -> TestFile:
    from pygls.uris import to_fs_path

    from noetl.cli.language.test_files import load_tests
    from noetl.testing.cases.files.read import read_tests

    path = to_fs_path(uri)
    if not path or not Path(path).is_absolute():
        return read_tests(text, uri, uri.rpartition("/")[2])
    return load_tests(text, Path(path))[0]


def _fail(message: str) -> NoReturn:
    echo(f"noetl lsp: {message}", err=True)
    raise typer.Exit(2)
