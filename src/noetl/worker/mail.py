"""Outbox target `smtp`: deliver a message as an e-mail.

The credential has `host` and `from`, and `port`, `user`, `password` and `tls` if need be: `starttls` (default), `implicit` or
`none`. The payload has `to`, `subject` and `text`. Tested in tests/unit/worker/test_mail.py.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.utils import formatdate
from hashlib import sha256
from typing import Any, Final

from noetl.model.outcome import Outcome, failed, ok
from noetl.ports import ToolContext
from noetl.ports.outbox import OutboxMessage
from noetl.triggers.notification import mail_problem

_PORTS: Final[Mapping[str, int]] = {"starttls": 587, "implicit": 465, "none": 25}
_TIMEOUT_S: Final = 20.0


async def send_mail(message: OutboxMessage, context: ToolContext) -> Outcome:
    """Send an e-mail by the server of the credential, within the egress rules."""
    try:
        credential = await context.credential(message.auth)
    except KeyError as error:
        return failed("auth", f"unknown credential {error}", code="NO_CREDENTIAL")
    problem = mail_problem(credential)
    if problem:
        return failed(
            "client_error", f"the credential `{message.auth}` cannot send e-mail: {problem}", code="SMTP_SETUP"
        )
    tls, host = str(credential.get("tls", "starttls")), str(credential["host"])
    port = int(credential.get("port") or _PORTS[tls])
    try:
        mail = _mail(message, str(credential["from"]))
    except ValueError as error:
        return failed("client_error", f"the e-mail cannot be written: {error}", code="SMTP_MESSAGE")
    try:
        addresses = await context.addresses(host, port)
    except PermissionError as error:
        return failed("client_error", str(error), code="EGRESS_DENIED")
    except OSError as error:
        return failed("connection", f"{host} has no address: {error}", code="SMTP_HOST", retryable=True)
    async with context.thread() as thread:
        outcome: Outcome = await thread.run(_send, mail, credential, tls, (host, port), addresses)
    return outcome


def _mail(message: OutboxMessage, sender: str) -> EmailMessage:
    payload = message.payload
    mail = EmailMessage()
    mail["From"], mail["To"] = sender, ", ".join(payload["to"])
    mail["Subject"] = payload["subject"]
    mail["Date"] = formatdate(message.created_at / 1000)
    mail["Message-ID"] = f"<{sha256(message.key.encode()).hexdigest()[:40]}@noetl>"  # the same for every attempt
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(payload["text"])
    return mail


def _send(
    mail: EmailMessage,
    credential: Mapping[str, Any],
    tls: str,
    place: tuple[str, int],
    addresses: Sequence[str] | None,
) -> Outcome:
    host, port = place
    try:
        with _Session(host, port, tls, addresses) as session:
            user = credential.get("user") or credential.get("username")
            if user:
                session.login(str(user), str(credential.get("password") or ""))
            session.send_message(mail)
    except smtplib.SMTPAuthenticationError as error:
        return failed("auth", f"{host} refused the user: {_said(error)}", code="SMTP_AUTH")
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        again = any(400 <= code < 500 for code in codes)
        return failed("client_error", f"{host} refused every receiver", code="SMTP_RECEIVERS", retryable=again)
    except smtplib.SMTPResponseException as error:
        again = 400 <= error.smtp_code < 500
        return failed(
            "server_error", f"{host} refused the e-mail: {_said(error)}", code="SMTP_REFUSED", retryable=again
        )
    except smtplib.SMTPNotSupportedError as error:
        fix = "the credential's `tls: none` sends without encryption"
        return failed("client_error", f"{host} lacks what is needed: {error}; {fix}", code="SMTP_UNSUPPORTED")
    except (OSError, smtplib.SMTPException) as error:
        return failed("connection", f"cannot send by {host}:{port}: {error}", code="SMTP_CONNECTION", retryable=True)
    return ok({"to": mail["To"], "message_id": mail["Message-ID"]})


def _said(error: smtplib.SMTPResponseException) -> str:
    text = error.smtp_error
    return f"{error.smtp_code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"


class _Session(smtplib.SMTP):
    """A session with a server at one of its allowed addresses."""

    def __init__(self, host: str, port: int, tls: str, addresses: Sequence[str] | None) -> None:
        super().__init__(timeout=_TIMEOUT_S)
        self._server_name = host
        self.sock = _connected(addresses or [host], port)
        try:
            if tls == "implicit":
                self._encrypt()
            code, said = self.getreply()
            if code != 220:
                raise smtplib.SMTPConnectError(code, said)
            self.ehlo_or_helo_if_needed()
            if tls == "starttls":
                self._start_tls()
        except BaseException:
            self.close()
            raise

    def _start_tls(self) -> None:
        if not self.has_extn("starttls"):
            raise smtplib.SMTPNotSupportedError("the server offers no STARTTLS")
        code, said = self.docmd("STARTTLS")
        if code != 220:
            raise smtplib.SMTPResponseException(code, said)
        self._encrypt()
        self.file = None
        self.ehlo_resp = self.helo_resp = None
        self.esmtp_features = {}
        self.ehlo_or_helo_if_needed()

    def _encrypt(self) -> None:
        assert self.sock is not None
        self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self._server_name)


def _connected(addresses: Sequence[str], port: int) -> socket.socket:
    """Return a connection to the first address that answers. Raises OSError."""
    last: OSError | None = None
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=_TIMEOUT_S)
        except OSError as error:
            last = error
    raise last or OSError("the server has no address")
