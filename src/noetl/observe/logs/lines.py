"""Log lines: the records of `logging` as JSON, or for people.

The standard library, because `noetl --help` and `noetl run` load it already. Every text passes the mask over secrets, and
control characters are escaped. A line of a worker names the work that it belongs to. Tested in
tests/unit/observe/logs/test_lines.py.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from noetl.masking.readers import ReaderMask
    from noetl.model.work import WorkItem

SERVER_EVENTS: Final = "noetl.server.events"  # loggers
WORKER_EVENTS: Final = "noetl.worker.events"
working: ContextVar[WorkItem | None] = ContextVar("noetl_working", default=None)  # what the current task works on
_STACK_MOST: Final = 16_000  # characters
_encode = msgspec.json.Encoder().encode
_PLAIN: Final = (bool, int, float, type(None))


def log_event(logger: logging.Logger, level: int, name: str, fields: Mapping[str, Any]) -> None:
    """Log an event with its fields."""
    record = logging.LogRecord(logger.name, level, "", 0, name, (), None)
    record.fields = fields
    logger.handle(record)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    """Return the fields of an event; of another record, the work that it belongs to."""
    found: Mapping[str, Any] | None = getattr(record, "fields", None)
    if found is not None:
        return found
    work = working.get()
    return {} if work is None else work_fields(work)


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
        own, given = {"msg": record.getMessage()}, _fields(record)
        if "fields" in record.__dict__:
            own["event"] = record.getMessage()
        head = {"ts": _time(record.created), "level": record.levelname, "logger": record.name}
        line = head | own | {name: value for name, value in given.items() if value is not None}
        if record.exc_info and record.exc_info[1] is not None:
            line |= {"error_class": type(record.exc_info[1]).__name__, "error": str(record.exc_info[1])}
            line["stack"] = self.formatException(record.exc_info)[-_STACK_MOST:]
        coded = _encode(line)
        if self._mask().may_hold(coded):
            coded = _encode({name: self._shown(name, value) for name, value in line.items()})
        return self._escape(coded.decode())


class ConsoleLines(_Lines):
    """Lines for people: time, level, text or event, and its fields.

    Commands, which are no services, begin their lines with `noetl:` instead.
    """

    def __init__(self, mask: Callable[[], ReaderMask], escape: Callable[[str], str], *, service: bool = True) -> None:
        super().__init__(mask, escape)
        self._is_service = service

    def format(self, record: logging.LogRecord) -> str:
        mask = self._mask()
        text = f"{_time(record.created)} {record.levelname} " if self._is_service else "noetl: "
        text += mask.line(record.getMessage())
        if "fields" in record.__dict__:
            shown = {name: self._shown(name, value) for name, value in _fields(record).items() if value is not None}
            text += "".join(f" {name}={_word(value)}" for name, value in shown.items())
        if record.exc_info:
            text += "\n" + mask.line(self.formatException(record.exc_info))
        return self._escape(text)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value).decode()


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def configure(lines: logging.Formatter, level: str, libraries: str, events: str) -> None:
    """Log to stderr: own messages, log events and libraries, each from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(lines)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(libraries)
    logging.getLogger("noetl").setLevel(level)
    for name in (SERVER_EVENTS, WORKER_EVENTS):
        logging.getLogger(name).setLevel(events)
