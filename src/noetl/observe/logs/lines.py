"""Log lines: the records of `logging` as JSON, or for people.

The standard library, because `noetl --help` and `noetl run` load it already. Every text passes the mask over secrets, and
control characters are escaped. A line of a worker names the work that it belongs to. The log events of 10 ms
are one record and one write. Tested in tests/unit/observe/logs/test_lines.py.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from noetl.observe.logs.table import LOG_EVENTS, Line

if TYPE_CHECKING:
    from noetl.masking.readers import ReaderMask
    from noetl.model.work import WorkItem

working: ContextVar[WorkItem | None] = ContextVar("noetl_working", default=None)  # what the current task works on
_DELAY_S: Final = 0.01
_STACK_MOST: Final = 16_000  # characters
_encode = msgspec.json.Encoder().encode
_PLAIN: Final = (bool, int, float, type(None))


class EventLogger:
    """Logs events of a server or a worker; those of 10 ms are one write."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._logger = logging.getLogger(name)
        self._waiting: list[Line] = []

    def is_on(self, level: int) -> bool:
        """Return whether events of a level are logged."""
        return self._logger.isEnabledFor(level)

    def log(self, lines: Iterable[Line]) -> None:
        """Log events of this moment, within 10 ms."""
        if not self._waiting:
            asyncio.get_running_loop().call_later(_DELAY_S, self.flush)
        now = timestamp(time.time())
        self._waiting += (line.stamp(now, _LEVEL_OF[line.event], self.name) for line in lines)

    def flush(self) -> None:
        """Write what waits."""
        lines, self._waiting = self._waiting, []
        if lines:
            level = max(LOG_EVENTS[line.event].level for line in lines)
            record = logging.LogRecord(self.name, level, "", 0, " ".join(line.event for line in lines), (), None)
            record.__dict__["lines"] = lines
            self._logger.handle(record)


SERVER_EVENTS: Final = EventLogger("noetl.server.events")
WORKER_EVENTS: Final = EventLogger("noetl.worker.events")


def work_fields(work: WorkItem) -> dict[str, Any]:
    """Return the common fields of lines about a work item."""
    return {"execution_id": work.execution_id, "step_id": work.step, "call_id": work.run_id}


class _Lines(logging.Formatter):
    """Masked and escaped lines."""

    def __init__(self, mask: Callable[[], ReaderMask], escape: Callable[[str], str]) -> None:
        super().__init__()
        self._mask = mask
        self._escape = escape

    def _shown(self, name: str, value: Any) -> Any:
        """Return a field's value without secrets; `name` is one of NoETL's own."""
        if isinstance(value, _PLAIN):
            return value
        mask = self._mask()
        return mask.line(value) if isinstance(value, str) else mask.data(value, name)


class JsonLines(_Lines):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        found: Sequence[Line | Mapping[str, Any]] = getattr(record, "lines", ()) or (self._message(record),)
        coded, mask = [_encode(line) for line in found], self._mask()
        whole = b"\n".join(coded)
        if mask.may_hold(whole):
            coded = [self._masked(line) if mask.may_hold(one) else one for line, one in zip(found, coded, strict=True)]
            whole = b"\n".join(coded)
        text = whole.decode()
        return text if text.isascii() and "\x7f" not in text else self._escape(text)  # JSON has no other controls

    def _message(self, record: logging.LogRecord) -> dict[str, Any]:
        line = {"ts": timestamp(record.created), "level": record.levelname, "logger": record.name}
        line["msg"] = record.getMessage()
        work = working.get()
        line |= {} if work is None else work_fields(work)
        if record.exc_info and record.exc_info[1] is not None:
            line |= {"error_class": type(record.exc_info[1]).__name__, "error": str(record.exc_info[1])}
            line["stack"] = self.formatException(record.exc_info)[-_STACK_MOST:]
        return line

    def _masked(self, line: Line | Mapping[str, Any]) -> bytes:
        named = line.items() if isinstance(line, Mapping) else fields_of(line)
        return _encode({name: self._shown(name, value) for name, value in named})


class ConsoleLines(_Lines):
    """Lines for people: time, level, text or event, and its fields.

    Commands, which are no services, begin their lines with `noetl:` instead.
    """

    def __init__(self, mask: Callable[[], ReaderMask], escape: Callable[[str], str], *, service: bool = True) -> None:
        super().__init__(mask, escape)
        self._is_service = service

    def format(self, record: logging.LogRecord) -> str:
        lines: list[Line] = getattr(record, "lines", [])
        return self._escape("\n".join([self._event(line) for line in lines] or [self._message(record)]))

    def _event(self, line: Line) -> str:
        shown = ((name, self._shown(name, value)) for name, value in fields_of(line)[_HEAD:])
        fields = "".join(f" {name}={_word(value)}" for name, value in shown)
        return f"{self._begin(line.ts, line.level)}{line.event}{fields}"

    def _message(self, record: logging.LogRecord) -> str:
        mask = self._mask()
        text = self._begin(timestamp(record.created), record.levelname) + mask.line(record.getMessage())
        return text + ("\n" + mask.line(self.formatException(record.exc_info)) if record.exc_info else "")

    def _begin(self, at: str, level: str) -> str:
        return f"{at} {level} " if self._is_service else "noetl: "


_LEVEL_OF: Final = {name: logging.getLevelName(one.level) for name, one in LOG_EVENTS.items()}
_HEAD: Final = 5  # fields before those of the event
_NAMES: Final = tuple(zip(Line.__struct_fields__, Line.__struct_encode_fields__, strict=True))


def fields_of(line: Line) -> list[tuple[str, Any]]:
    """Return the fields that a line has, by the names they are shown under."""
    return [(name, value) for field, name in _NAMES if (value := getattr(line, field)) is not None]


def _word(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value).decode()


@lru_cache(maxsize=4)
def _second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def timestamp(seconds: float) -> str:
    """Return a time in UTC, to the millisecond."""
    whole, part = divmod(round(seconds * 1000), 1000)
    return f"{_second(whole)}.{part:03d}Z"


def configure(lines: logging.Formatter, level: str, libraries: str, events: str) -> None:
    """Log to stderr: own messages, log events and libraries, each from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(lines)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(libraries)
    logging.getLogger("noetl").setLevel(level)
    for logger in (SERVER_EVENTS, WORKER_EVENTS):
        logging.getLogger(logger.name).setLevel(events)
        atexit.register(logger.flush)
