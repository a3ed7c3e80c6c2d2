"""E-mail by SMTP: encrypted by default, within the egress rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from noetl.model.outcome import Outcome
from noetl.ports import ToolContext
from noetl.ports.outbox import OutboxMessage
from noetl.worker.mail import send_mail
from tests.certificates import self_signed
from tests.mail_server import MailServer, mail_server

pytestmark = pytest.mark.asyncio
PAYLOAD = {"to": ["ops@example.com", "b@example.com"], "subject": "[NoETL] é", "text": "one\n.two é"}


class Context:
    """What the target uses of its context."""

    def __init__(self, data: Mapping[str, Any] | None, denied: str = "") -> None:
        self._data, self._denied = data, denied

    async def credential(self, name: str) -> Mapping[str, Any]:
        if self._data is None:
            raise KeyError(name)
        return self._data

    async def addresses(self, host: str, port: int) -> list[str] | None:
        if self._denied:
            raise PermissionError(self._denied)
        return ["127.0.0.1"]

    @asynccontextmanager
    async def thread(self) -> AsyncIterator[Context]:
        yield self

    async def run(self, job: Callable[..., Any], *given: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, job, *given)


async def sent(server: MailServer | None, denied: str = "", **more: Any) -> Outcome:
    data = {"host": "127.0.0.1", "port": server.port if server else 9, "from": "noetl@example.com", **more}
    message = OutboxMessage("k", target="smtp", payload=PAYLOAD, auth="mail")
    return await send_mail(message, cast(ToolContext, Context(data, denied)))


async def test_a_mail_arrives_whole_with_a_stable_id() -> None:
    async with mail_server() as server:
        for _ in range(2):
            assert (await sent(server, tls="none", user="u", password="p")).error is None
        first, second = server.mails
        assert (first["From"], first["To"]) == ("noetl@example.com", "ops@example.com, b@example.com")
        assert first["Subject"] == "[NoETL] é"
        assert first.get_content().split() == ["one", ".two", "é"]  # type: ignore[attr-defined]
        assert first["Message-ID"] == second["Message-ID"]
        assert [line for line in server.said if line.startswith("AUTH")]


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_a_mail_is_encrypted_to_a_server_with_a_known_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: str
) -> None:
    context, certificate = self_signed(tmp_path)
    given: dict[str, Any] = {"implicit": context} if tls == "implicit" else {"tls": context}
    async with mail_server(**given) as server:
        refused = await sent(server, tls=tls)
        assert refused.error is not None
        assert "certificate" in refused.error.message
        assert server.mails == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert (await sent(server, tls=tls, user="u", password="p")).error is None
        assert len(server.mails) == 1
        if tls == "starttls":
            assert server.said.index("TLS") < [line[:4] for line in server.said].index("AUTH")


async def test_without_encryption_nothing_is_sent_by_default() -> None:
    async with mail_server() as server:
        outcome = await sent(server, user="u", password="p")
        assert outcome.error is not None
        assert (outcome.error.code, outcome.error.retryable) == ("SMTP_UNSUPPORTED", False)
        assert "tls: none" in outcome.error.message
        assert not any(line.startswith("AUTH") for line in server.said)


@pytest.mark.parametrize(
    ("answers", "code", "again"),
    [
        ({"AUTH": "535 no"}, "SMTP_AUTH", False),
        ({"RCPT": "550 unknown"}, "SMTP_RECEIVERS", False),
        ({"RCPT": "451 later"}, "SMTP_RECEIVERS", True),
        ({"MAIL": "550 no"}, "SMTP_REFUSED", False),
        ({"DATA": "452 full"}, "SMTP_REFUSED", True),
    ],
)
async def test_a_refusal_says_whether_it_is_tried_again(answers: dict[str, str], code: str, again: bool) -> None:
    async with mail_server(answers=answers) as server:
        outcome = await sent(server, tls="none", user="u", password="p")
        assert outcome.error is not None
        assert (outcome.error.code, outcome.error.retryable) == (code, again)


async def test_what_cannot_be_reached_or_set_up_is_said() -> None:
    for more, code in (({"tls": "x"}, "SMTP_SETUP"), ({"from": "a@b\nBcc: c@d"}, "SMTP_MESSAGE")):
        outcome = await sent(None, **more)
        assert outcome.error is not None
        assert outcome.error.code == code
    denied = await sent(None, denied="not allowed")
    assert denied.error is not None
    assert denied.error.code == "EGRESS_DENIED"
    async with mail_server() as server:
        pass
    gone = await sent(server, tls="none")
    assert gone.error is not None
    assert (gone.error.code, gone.error.retryable) == ("SMTP_CONNECTION", True)
    message = OutboxMessage("k", target="smtp", payload=PAYLOAD, auth="mail")
    unknown = await send_mail(message, cast(ToolContext, Context(None)))
    assert unknown.error is not None
    assert unknown.error.code == "NO_CREDENTIAL"
