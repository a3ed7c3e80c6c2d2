"""One frame of `noetl top`. Tested in tests/acceptance/servers/test_top_cli.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from noetl.cli.output.format import format_duration, format_time, shorten
from noetl.cli.runtime.terminal import escaped

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from noetl.cli.output.top_readings import Counted, Rates, Reading, Step

_OPEN: Final = ("running", "waiting", "pending", "paused")
_COLOURS: Final = {"running": "cyan", "waiting": "yellow", "paused": "yellow", "completed": "green", "failed": "red"}
_LATE_MS: Final = 30_000
_LEAST: Final = {"ended": 10, "execution": 18, "playbook": 14, "heartbeat": 10, "mean": 8}  # characters
_ROWS: Final = {"pools": 6, "workers": 8, "steps": 6, "failures": 6}
_MOST_ERROR: Final = 120


def frame(reading: Reading, shown: str, rates: Rates | None, steps: list[Step], room: int = 0) -> Group:
    """Return the frame of a read, within `room` lines; 0: no limit."""
    from rich.console import Group

    most = _fitting(reading, steps, room)
    return Group(
        _head(reading, shown),
        _counts("executions", {name: reading.open.get(name, 0) for name in _OPEN}),
        _counts("24 hours", reading.day),
        _totals(reading.counted) if rates is None else _rates(rates),
        *_pools(reading, most["pools"]),
        *_workers(reading, most["workers"]),
        *_steps(steps, rates, most["steps"]),
        *_failures(reading, most["failures"]),
    )


def _fitting(reading: Reading, steps: list[Step], room: int) -> Mapping[str, int]:
    """Return how many rows of each table are shown."""
    if not room:
        return dict.fromkeys(_ROWS, 1_000)
    left = room - 4 - 3 * len(_ROWS)  # lines of the head, and a title, a header and an empty line for each table
    wanted = dict(
        zip(_ROWS, (len(reading.pools), len(reading.workers), len(steps), len(reading.failures)), strict=True)
    )
    most = dict.fromkeys(_ROWS, 1)
    left -= len(_ROWS)
    while left > 0 and any(most[name] < wanted[name] for name in _ROWS):
        for name in _ROWS:
            if left > 0 and most[name] < wanted[name]:
                most[name] += 1
                left -= 1
    return most


def _text(*parts: tuple[str, str]) -> Text:
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ellipsis")
    for words, how in parts:
        text.append(escaped(words), style=how)
    return text


def _head(reading: Reading, shown: str) -> Text:
    return _text(("noetl top  ", "bold"), (shown, ""), (f"  noetl {reading.version}  {format_time(reading.at)}", "dim"))


def _counts(title: str, counts: Mapping[str, int]) -> Text:
    parts: list[tuple[str, str]] = [(f"{title:<12}", "bold")]
    for name, number in counts.items():
        parts += [(f"{name} ", ""), (f"{number:,}  ", _COLOURS.get(name, "") if number else "dim")]
    return _text(*(parts if counts else [*parts, ("none", "dim")]))


def _totals(counted: Counted | None) -> Text:
    if counted is None:
        return _text((f"{'totals':<12}", "bold"), ("this server exposes no metrics", "dim"))
    numbers = {"started": counted.started, "ended": counted.ended, "steps": counted.steps}
    return _numbers(
        "totals",
        {name: f"{number:,.0f}" for name, number in numbers.items()},
        f"{counted.failed:,.0f}",
        "since start",
    )


def _rates(rates: Rates) -> Text:
    numbers = {"started": rates.started, "ended": rates.ended, "steps": rates.steps}
    shown = {name: f"{number:,.1f}/s" for name, number in numbers.items()}
    return _numbers("rates", shown, f"{rates.failed:,.1f}/s", f"last {rates.seconds:,.0f} s")


def _numbers(title: str, numbers: Mapping[str, str], failed: str, when: str) -> Text:
    each = [(f"{name} {number}  ", "") for name, number in numbers.items()]
    how = "red" if failed.strip("0./s") else ""
    return _text((f"{title:<12}", "bold"), *each, (f"failed steps {failed}  ", how), (f"({when}, this server)", "dim"))


def _table(title: str, wide: str, *columns: tuple[str, Any]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        expand=True,
        padding=(0, 1),
        show_edge=False,
    )
    for name, justify in columns:
        least, share = (_LEAST.get(name), 1 if name == wide else None)
        table.add_column(
            name, justify=justify, no_wrap=True, overflow="ellipsis", header_style="dim", min_width=least, ratio=share
        )
    return table


def _filled(table: Table, rows: list[tuple[Any, ...]], most: int, none: str) -> Iterator[Any]:
    yield _text(("", ""))
    if not rows:
        yield _text((str(table.title), "bold"), (f"  {none}", "dim"))
        return
    for row in rows[:most]:
        table.add_row(*(cell if not isinstance(cell, str) else _text((cell, "")) for cell in row))
    if len(rows) > most:
        table.title = f"{table.title} ({most} of {len(rows)})"
    yield table


def _pools(reading: Reading, most: int) -> Iterator[Any]:
    columns = ("queued", "oldest", "running", "dead", "workers", "slots")
    table = _table("Pools", "pool", ("pool", "left"), *((name, "right") for name in columns))
    rows = []
    for pool in sorted(reading.pools, key=lambda one: (-one.queued, one.pool)):
        oldest = "" if pool.oldest is None else format_duration(max(0, reading.at - pool.oldest))
        is_stuck = pool.queued and not pool.workers
        workers = _text((str(pool.workers), "red" if is_stuck else ""))
        numbers = (f"{pool.queued:,}", oldest, f"{pool.leased:,}", f"{pool.dead:,}", workers, f"{pool.capacity:,}")
        rows.append((pool.pool or "(default)", *numbers))
    yield from _filled(table, rows, most, "no work and no workers")


def _workers(reading: Reading, most: int) -> Iterator[Any]:
    table = _table(
        "Workers",
        "worker",
        ("worker", "left"),
        ("pool", "left"),
        ("status", "left"),
        ("busy", "right"),
        ("heartbeat", "right"),
    )
    rows = []
    for one in sorted(reading.workers, key=lambda row: (-row.active, row.worker_id)):
        silent = max(0, reading.at - one.seen_at)
        heartbeat = _text((f"{format_duration(silent)} ago", "red" if silent > _LATE_MS else ""))
        busy = f"{one.active}/{one.capacity}"
        rows.append((one.worker_id, one.pool or "(default)", one.status, busy, heartbeat))
    yield from _filled(table, rows, most, "none is connected: `noetl worker start`, or `noetl up`")


def _steps(steps: list[Step], rates: Rates | None, most: int) -> Iterator[Any]:
    since = "since start" if rates is None else f"last {rates.seconds:,.0f} s"
    table = _table(
        f"Slowest steps, {since}",
        "playbook",
        ("playbook", "left"),
        ("step", "left"),
        ("runs", "right"),
        ("mean", "right"),
    )
    rows = [(one.workflow, one.step, f"{one.runs:,}", format_duration(one.mean_s * 1000)) for one in steps]
    yield from _filled(table, rows, most, "no step ended")


def _failures(reading: Reading, most: int) -> Iterator[Any]:
    table = _table(
        "Newest failures", "error", ("ended", "left"), ("execution", "left"), ("playbook", "left"), ("error", "left")
    )
    rows = []
    for one in reading.failures:
        ended = "" if one.ended_at is None else f"{format_duration(max(0, reading.at - one.ended_at))} ago"
        rows.append((ended, one.execution_id, one.path, shorten(_error_of(one.error), _MOST_ERROR)))
    yield from _filled(table, rows, most, "none")


def _error_of(error: Any) -> str:
    if not isinstance(error, Mapping):
        return str(error or "")
    step = f"{error['step']}: " if error.get("step") else ""
    return f"{step}{error.get('message') or error.get('code') or error.get('kind') or ''}"
