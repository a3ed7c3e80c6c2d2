"""Format times, durations and JSON for terminals and programs; JSON is masked."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from noetl.cli.runtime.environment import reader_mask


def to_json(data: Any) -> str:
    """Return data as JSON on one line, with the mask over secrets."""
    return reader_mask().json(data).decode()


def to_pretty_json(data: Any) -> str:
    """Return data as indented JSON, with the mask over secrets."""
    import msgspec

    return msgspec.json.format(reader_mask().json(data), indent=2).decode()


def to_plain_json(data: Any) -> str:
    """Return data as JSON on one line as it is: a new secret, which is shown once."""
    import msgspec

    return msgspec.json.encode(data).decode()


def format_duration(ms: float) -> str:
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 120_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms / 60_000:.0f} min" if ms < 7_200_000 else f"{ms / 3_600_000:.1f} h"


def format_time(at: int) -> str:
    """Return a local time of day; with the date if it is not today."""
    then = datetime.fromtimestamp(at / 1000).astimezone()
    today = datetime.now().astimezone().date()
    return f"{then:%H:%M:%S}" if then.date() == today else f"{then:%Y-%m-%d %H:%M:%S}"


def item_count(count: int) -> str:
    """Return a number of loop items with its noun."""
    return "1 item" if count == 1 else f"{count:,} items"


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters, with an ellipsis if the text is longer."""
    return text if len(text) <= limit else text[:limit] + "…"
