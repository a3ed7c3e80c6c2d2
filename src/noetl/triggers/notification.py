"""A notification: which events it sends, to which channel, and in which words.

    path: team-a/*               # of the executions that it watches
    on: [failed, approval]
    channel: slack               # or webhook, email
    credential: team_a_slack     # its `url` is the address

Tested in tests/unit/triggers/test_notification.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, get_args
from urllib.parse import quote, urlsplit

import msgspec

from noetl.schedules.spec import Problem, duration_ms

On = Literal["failed", "timeout", "dead_letter", "approval", "sla"]
Channel = Literal["webhook", "slack", "email"]
EVENTS: Final[tuple[str, ...]] = get_args(On)
CHANNELS: Final[tuple[str, ...]] = get_args(Channel)
MOST_SLA_MS: Final = 366 * 86_400_000
_LEAST_SLA_MS: Final = 1_000
_MOST_ERROR: Final = 1_000  # characters of an error's message
_ADDRESS: Final = re.compile(r"[^\s@<>,;:\"'()\[\]\\\x00-\x1f]+@[^\s@<>,;:\"'()\[\]\\\x00-\x1f]+")
TLS: Final = ("starttls", "implicit", "none")
_SLACK: Final = "hooks.slack.com"
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})  # in texts of Slack


class NotificationSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which events are sent, and where to."""

    on: tuple[On, ...]
    channel: Channel
    url: str = ""  # of a webhook; empty: the `url` of the credential
    credential: str = ""
    to: tuple[str, ...] = ()  # e-mail addresses
    sla: str | int = 0  # executions that run longer have missed it

    @property
    def sla_ms(self) -> int:
        return duration_ms(self.sla)


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happened to an execution, or to a message that started none."""

    event: str  # see EVENTS, or `test`
    execution_id: str
    path: str
    at: int
    status: str = ""
    step: str = ""
    error: str = ""
    letter_id: str = ""
    subscription: str = ""  # whose message is a dead letter; no execution has it
    signal: str = ""


def is_for(path: str, pattern: str) -> bool:
    """Return whether a notification watches executions of a path."""
    return fnmatchcase(path, pattern)


def check(spec: NotificationSpec) -> None:
    """Check a notification. Raises Problem with the first mistake."""
    if not spec.on:
        raise Problem("on", "A notification needs an event.", f"Name some of {', '.join(EVENTS)}.")
    _check_sla(spec)
    if spec.channel != "webhook" and spec.url:
        where = "in the credential" if spec.channel == "slack" else "to `to`"
        raise Problem("url", f"The channel {spec.channel} has no `url`.", f"Its messages go {where}: remove `url`.")
    if spec.channel != "email" and spec.to:
        raise Problem("to", f"The channel {spec.channel} has no `to`.", "Remove it, or write `channel: email`.")
    if spec.channel == "webhook" and spec.url:
        check_url(spec.url)
    elif not spec.credential.strip():
        raise Problem("credential", f"The channel {spec.channel} needs a credential.", _NEEDS[spec.channel])
    if spec.channel == "email":
        _check_receivers(spec.to)


_NEEDS: Final[Mapping[str, str]] = {
    "webhook": "Name one with the `url`, or write `url`.",
    "slack": "Name one whose `url` is the address of the incoming webhook.",
    "email": "Name one with `host`, `from`, and `user` and `password` if the server wants them.",
}


def _check_sla(spec: NotificationSpec) -> None:
    fix = "Write a duration such as 30m or 2h, up to 366d."
    try:
        found = spec.sla_ms
    except ValueError:
        raise Problem("sla", f"{spec.sla!r} is no duration.", fix) from None
    if "sla" not in spec.on:
        if found:
            raise Problem("sla", "The duration is not used.", "Add `sla` to `on`, or remove the duration.")
    elif not _LEAST_SLA_MS <= found <= MOST_SLA_MS:
        raise Problem("sla", "The event `sla` needs the duration after which it is missed.", fix)


def check_url(url: str) -> None:
    """Check a URL that every viewer can read. Raises Problem."""
    try:
        parts = urlsplit(url)
        is_known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_known = False
    if not is_known or not url.isprintable() or " " in url:
        raise Problem("url", f"{url[:200]!r} is no URL.", "Write one such as https://example.com/alerts.")
    place = urlsplit(url)
    if place.username or place.password or place.hostname == _SLACK:
        what = "The URL holds a secret, which every viewer could read."
        raise Problem("url", what, "Store the URL as `url` of a credential, and name that as `credential`.")


def _check_receivers(given: tuple[str, ...]) -> None:
    fix = "Write addresses such as ops@example.com."
    if not given:
        raise Problem("to", "The channel email needs a receiver.", fix)
    for one in given:
        if not one.isascii() or _ADDRESS.fullmatch(one) is None:
            raise Problem("to", f"{one[:100]!r} is no e-mail address.", fix)


def address_in(credential: Mapping[str, Any]) -> str:
    """Return the URL that a credential holds, or an empty text."""
    found = credential.get("url") or credential.get("value")
    return found if isinstance(found, str) and found.startswith(("https://", "http://")) else ""


def mail_problem(credential: Mapping[str, Any]) -> str:
    """Return why e-mail cannot be sent with a credential, or an empty text."""
    for name in ("host", "from"):
        if not isinstance(credential.get(name), str) or not credential[name].strip():
            return f"it has no `{name}`"
    if str(credential.get("tls", "starttls")) not in TLS:
        return f"its `tls` is none of {', '.join(TLS)}"
    port = str(credential.get("port", 25))
    if not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65_536):
        return "its `port` is no number of a port"
    return ""


def link_to(execution_id: str, base: str) -> str:
    """Return the URL of an execution, or an empty text if the server has none."""
    return f"{base.rstrip('/')}/api/executions/{quote(execution_id, safe='')}" if base and execution_id else ""


def subject_of(news: News) -> str:
    """Return one line about what happened."""
    step, name = f" in step {news.step}" if news.step else "", news.path or "NoETL"
    step = f" of the subscription {news.subscription}" if news.subscription else step
    said = {
        "failed": f"{name} failed{step}",
        "timeout": f"{name} timed out{step}",
        "dead_letter": f"{name} has a dead letter{step}",
        "approval": f"{name} waits for an approval{step}: {news.signal}",
        "sla": f"{name} has missed its SLA",
        "test": f"Test of the notification for {name}",
    }
    return " ".join(said[news.event].split())


def text_of(news: News, base: str) -> str:
    """Return what happened in words, with a link or the command that shows more."""
    lines = [subject_of(news)]
    if news.error:
        lines.append(news.error[:_MOST_ERROR])
    if news.execution_id:
        link, number = link_to(news.execution_id, base), news.execution_id
        commands = [f"noetl explain {number}"]
        if news.event == "approval":
            commands.append(f"noetl approve {number}")
        if news.letter_id:
            commands.append(f"noetl dlq show {news.letter_id}")
        lines.append(f"Execution {number}: {link or ', '.join(commands)}")
    elif news.letter_id:
        lines.append(f"noetl dlq show {news.letter_id}")
    return "\n".join(lines)


def payload_of(notification_id: str, spec: NotificationSpec, news: News, base: str) -> dict[str, Any]:
    """Return the body that a channel gets."""
    text = text_of(news, base)
    if spec.channel == "slack":
        return {"text": text.translate(_ESCAPED)}
    if spec.channel == "email":
        return {"to": list(spec.to), "subject": f"[NoETL] {subject_of(news)}"[:200], "text": text}
    link = link_to(news.execution_id, base)
    facts = msgspec.to_builtins(news)
    return {"notification": notification_id, **facts, "text": text, **({"url": link} if link else {})}
