"""A subscription as it is written: in a playbook, in a request or in the store.

    source: table                # or listen, folder, http
    auth: orders_db
    table: public.orders
    key: id
    payload: { order: "{{ message.data.id }}" }

Tested in tests/unit/triggers/test_subscription.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, Literal, get_args

import msgspec

from noetl.schedules.spec import Problem, duration_ms
from noetl.triggers.notification import check_url
from noetl.triggers.template_fields import check_templates

Kind = Literal["listen", "table", "folder", "http"]
Begin = Literal["now", "first"]
Format = Literal["json", "text", "none"]
After = Literal["keep", "delete"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
BEGINS: Final[tuple[str, ...]] = get_args(Begin)
FORMATS: Final[tuple[str, ...]] = get_args(Format)
AFTERS: Final[tuple[str, ...]] = get_args(After)
ROOTS: Final = ("message",)  # names that templates of the payload see
MOST_EVERY_MS: Final = 86_400_000
_MOST_ID: Final = 200
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")
_NEEDS: Final[Mapping[str, Mapping[str, str]]] = {  # source → fields that it must have, each with an example
    "listen": {"channel": "orders", "auth": "orders_db"},
    "table": {"table": "public.orders", "key": "id", "auth": "orders_db"},
    "folder": {"folder": "/srv/drop"},
    "http": {"url": "https://example.com/orders", "id": "{{ item.id }}"},
}
_ONLY: Final[Mapping[str, tuple[str, ...]]] = {  # field → sources that have it
    "auth": ("listen", "table", "http"),
    "channel": ("listen", "table"),
    "table": ("table",),
    "key": ("table",),
    "begin": ("table",),
    "folder": ("folder",),
    "pattern": ("folder",),
    "after": ("folder",),
    "format": ("listen", "folder"),
    "url": ("http",),
    "params": ("http",),
    "items": ("http",),
    "id": ("http",),
    "cursor": ("http",),
}
_TEMPLATES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {  # field → names that its templates see, and of what
    "params": (("cursor",), "A request"),
    "items": (("body",), "A response"),
    "cursor": (("body",), "A response"),
    "id": (("item",), "An item"),
    "payload": (ROOTS, "A message"),
}


class SubscriptionSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where messages come from, and how each is turned into a workload."""

    source: Kind
    auth: str = ""  # name of a credential
    channel: str = ""  # of PostgreSQL; with a table, it wakes the poll
    table: str = ""
    key: str = ""  # column of the table, unique and growing
    begin: Begin = "now"  # with the rows that follow, or with the first
    folder: str = ""
    pattern: str = "*"  # of file names
    after: After = "keep"  # what becomes of a file
    format: Format = "json"  # of a notification or a file; none: its content is not read
    url: str = ""
    params: Mapping[str, Any] = {}  # of the query, with templates over `cursor`
    items: str = "{{ body }}"
    id: str = ""  # template over `item`
    cursor: str = ""  # template over `body`
    every: str | int = "10s"
    payload: Mapping[str, Any] = {}  # with templates; empty: `message`

    @property
    def every_ms(self) -> int:
        return duration_ms(self.every)


_PLAIN: Final = SubscriptionSpec("listen")


def check(spec: SubscriptionSpec) -> None:
    """Check a subscription. Raises Problem with the first mistake."""
    for field, example in _NEEDS[spec.source].items():
        if not getattr(spec, field).strip():
            raise Problem(field, f"`source: {spec.source}` needs `{field}`.", f"Write `{field}`, such as {example}.")
    for field, sources in _ONLY.items():
        if getattr(spec, field) != getattr(_PLAIN, field) and spec.source not in sources:
            fix = f"Remove it, or write {' or '.join(f'`source: {one}`' for one in sources)}."
            raise Problem(field, f"`source: {spec.source}` has no `{field}`.", fix)
    _check_names(spec)
    _check_every(spec.every)
    if spec.format == "none" and spec.source != "folder":
        raise Problem("format", "A notification has only its text.", "Write `format: json` or `format: text`.")
    if spec.folder and not spec.folder.startswith("/"):
        raise Problem("folder", f"{spec.folder!r} is no whole path.", "Begin it with `/`.")
    if "/" in spec.pattern:
        raise Problem("pattern", "A pattern is of names in the folder itself.", "Write one such as `*.json`.")
    if spec.url:
        check_url(spec.url)
    for field, (roots, what) in _TEMPLATES.items():
        check_templates(field, getattr(spec, field), roots, what)


def _check_names(spec: SubscriptionSpec) -> None:
    for field, most in (("channel", 1), ("table", 2), ("key", 1)):
        given = getattr(spec, field)
        parts = given.split(".")
        if given and (len(parts) > most or not all(_NAME.fullmatch(part) for part in parts)):
            fix = "Write letters, digits and `_`, as PostgreSQL has it."
            raise Problem(field, f"{given[:100]!r} is no name in PostgreSQL.", fix)


def _check_every(given: str | int) -> None:
    fix = "Write seconds, or a text such as 30s or 5m, up to 24h."
    try:
        found = duration_ms(given)
    except ValueError:
        raise Problem("every", f"{given!r} is no duration.", fix) from None
    if not 1_000 <= found <= MOST_EVERY_MS:
        raise Problem("every", f"{given!r} is out of range.", fix)


def state_id(subscription_id: str, created_at: int, spec: SubscriptionSpec) -> str:
    """Return the id of a subscription's state: another source begins anew."""
    names = ("source", "auth", "channel", "table", "key", "folder", "url", "id")
    parts = [str(created_at), *(getattr(spec, name) for name in names if name != "channel" or spec.source == "listen")]
    digest = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{subscription_id}@{digest[:32]}"


def message_key(message_id: str) -> str:
    """Return a message's id as stores and readers can hold it."""
    if message_id and len(message_id) <= _MOST_ID and message_id.isprintable():
        return message_id
    return f"sha256:{sha256(message_id.encode('utf-8', 'surrogatepass')).hexdigest()}"


def described(spec: SubscriptionSpec) -> str:
    """Return in a few words where messages come from."""
    wakes = f", woken by {spec.channel}" if spec.channel else ""
    return {
        "listen": f"channel {spec.channel}",
        "table": f"table {spec.table}{wakes}",
        "folder": f"folder {spec.folder}",
        "http": spec.url,
    }[spec.source]
