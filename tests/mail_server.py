"""Real mail server on loopback that takes every e-mail and records it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default


@dataclass
class MailServer:
    """Mails that arrived, and how the server behaves."""

    port: int = 0
    tls: ssl.SSLContext | None = None  # offers STARTTLS
    answers: dict[str, str] = field(default_factory=dict)  # by command
    mails: list[Message] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # commands, with `TLS` where one began

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # a client that trusts no certificate leaves
            await self._serve(reader, writer)
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail\r\n")
        while line := await reader.readline():
            command = line.decode().split()[0].upper()
            self.said.append(line.decode().strip())
            answer = self.answers.get(command) or self._answer(command)
            writer.write(f"{answer}\r\n".encode())
            await writer.drain()
            if command == "STARTTLS" and self.tls is not None:
                await writer.start_tls(self.tls)
                self.said.append("TLS")
            elif command == "DATA" and answer.startswith("354"):
                data = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(message_from_bytes(data[:-5].replace(b"\r\n..", b"\r\n."), policy=default))
                writer.write(b"250 taken\r\n")
            elif command == "QUIT":
                break

    def _answer(self, command: str) -> str:
        if command == "EHLO":
            return "250-mail\r\n250-AUTH PLAIN\r\n" + ("250-STARTTLS\r\n" if self.tls else "") + "250 8BITMIME"
        return {"AUTH": "235 in", "STARTTLS": "220 go", "DATA": "354 go", "QUIT": "221 bye"}.get(command, "250 ok")


@asynccontextmanager
async def mail_server(
    tls: ssl.SSLContext | None = None,
    *,
    implicit: ssl.SSLContext | None = None,
    answers: dict[str, str] | None = None,
) -> AsyncIterator[MailServer]:
    """Run a mail server."""
    served = MailServer(tls=tls, answers=answers or {})
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0, ssl=implicit)
    served.port = server.sockets[0].getsockname()[1]
    async with server:
        yield served
