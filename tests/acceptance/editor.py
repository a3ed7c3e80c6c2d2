"""Minimal editor: starts the real `noetl lsp` and exchanges messages with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

Message = dict[str, Any]
_PATIENCE = 120.0


class Stream(Protocol):
    """What is needed of a pipe or a connection."""

    def readline(self) -> bytes: ...
    def read(self, size: int, /) -> bytes: ...
    def write(self, data: bytes, /) -> object: ...
    def flush(self) -> None: ...


class Editor:
    """LSP client; positions are pairs of line and column, both from 0."""

    def __init__(self, reads: Stream, writes: Stream) -> None:
        self._reads = reads
        self._writes = writes
        self._count = 0
        self.diagnostics: dict[str, list[Message]] = {}
        self.noticed: list[Message] = []

    def _send(self, message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._writes.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._writes.flush()

    def _receive(self) -> Message:
        length = 0
        while line := self._reads.readline():
            if line == b"\r\n":
                message: Message = json.loads(self._reads.read(length))
                return message
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        raise EOFError("the server has closed its end")

    def notify(self, method: str, params: Message) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: Message | None = None) -> Message:
        """Send a request and return its response; keep diagnostics that come before it."""
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == self._count and "method" not in message:
                return message
            if message.get("method") == "textDocument/publishDiagnostics":
                self.diagnostics[message["params"]["uri"]] = message["params"]["diagnostics"]
            else:
                self.noticed.append(message)

    def result(self, method: str, params: Message | None = None) -> Any:
        answer = self.ask(method, params)
        assert "error" not in answer, answer
        return answer["result"]

    def at(self, method: str, uri: str, line: int, column: int, **more: Any) -> Any:
        position = {"line": line, "character": column}
        return self.result(f"textDocument/{method}", {"textDocument": {"uri": uri}, "position": position, **more})

    def start(self, root: Path | None = None, **capabilities: Any) -> Message:
        params = {"processId": None, "rootUri": root.as_uri() if root else None, "capabilities": capabilities}
        answer: Message = self.result("initialize", params)
        self.notify("initialized", {})
        return answer

    def open(self, uri: str, text: str, language: str = "yaml") -> None:
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, text: str, version: int) -> None:
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def found(self, uri: str) -> list[tuple[str, int, int]]:
        """Return code, line and column of the diagnostics published last."""
        self.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
        places = ((one["code"], one["range"]["start"]) for one in self.diagnostics[uri])
        return [(code, start["line"], start["character"]) for code, start in places]

    def leave(self) -> None:
        assert self.ask("shutdown")["result"] is None
        self.notify("exit", {})


class Running:
    """The process that an editor talks to."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdout is not None
        assert process.stdin is not None
        self.editor = Editor(process.stdout, process.stdin)

    def end(self) -> tuple[int, str]:
        """Wait for the process; give its exit code and what it wrote for people."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors.decode()


@contextmanager
def server(*arguments: str, cwd: Path | None = None) -> Iterator[Running]:
    """Run `noetl lsp`; the process is killed if the test leaves it behind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "noetl", "lsp", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
    )
    # A server that does not answer fails the test instead of keeping it waiting.
    watch = threading.Timer(_PATIENCE, process.kill)
    watch.start()
    with process:
        try:
            yield Running(process)
        finally:
            watch.cancel()
            if process.poll() is None:
                process.kill()


def applied(text: str, edits: list[Message]) -> str:
    """Apply edits to a text, counting columns in UTF-16 code units."""
    lines = text.split("\n")

    def offset(place: Message) -> int:
        line = lines[place["line"]].encode("utf-16-le")
        column = len(line[: place["character"] * 2].decode("utf-16-le"))
        return sum(len(before) + 1 for before in lines[: place["line"]]) + column

    for edit in sorted(edits, key=lambda one: offset(one["range"]["start"]), reverse=True):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text
