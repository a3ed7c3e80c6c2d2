"""Log lines as JSON and for people: form, mask, the work they belong to."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any

import pytest

from noetl.cli.runtime.terminal import escaped
from noetl.masking.readers import ReaderMask
from noetl.masking.values import MASK, KnownValues, in_process
from noetl.model.errors import InvalidInput
from noetl.model.work import WorkItem
from noetl.observe.logs.lines import SERVER_EVENTS, ConsoleLines, JsonLines, timestamp, working
from noetl.observe.logs.table import Line
from noetl.settings import logging_settings

MASKED = ReaderMask(["key"])
LINES = {
    "json": JsonLines(lambda: MASKED, escaped),
    "console": ConsoleLines(lambda: MASKED, escaped, service=True),
    "command": ConsoleLines(lambda: MASKED, escaped, service=False),
}


def line(form: str, text: str, level: int = logging.INFO, **fields: Any) -> str:
    record = logging.LogRecord("noetl.here", level, "", 0, text, (), None)
    record.created = 1_700_000_000.123
    if fields:
        head: dict[str, Any] = {"ts": timestamp(record.created), "level": record.levelname, "logger": record.name}
        record.lines = [Line(**head, msg=text, event="step_done", **fields)]
    return LINES[form].format(record)


def test_an_event_is_one_json_object() -> None:
    made = line("json", "step_done", step_id="a", ok=True, error=None, counters={"total": 2})
    assert json.loads(made) == {
        "ts": "2023-11-14T22:13:20.123Z", "level": "INFO", "logger": "noetl.here", "msg": "step_done",
        "event": "step_done", "step_id": "a", "ok": True, "counters": {"total": 2},
    }  # fmt: skip
    assert "\n" not in made


def test_people_read_time_level_event_and_fields() -> None:
    made = line("console", "step_done", step_id="a", ok=True, error=None, counters={"total": 2})
    assert made == '2023-11-14T22:13:20.123Z INFO step_done counters={"total":2} step_id=a ok=true'
    assert line("command", "it is lost") == "noetl: it is lost"


@pytest.mark.parametrize("form", ["json", "console", "command"])
def test_no_form_shows_a_secret(form: str) -> None:
    known = KnownValues()
    with in_process(known):
        known.learn("api", {"token": 'a"long\\secret'})
        made = line(
            form,
            "step_done",
            reason='failed with a"long\\secret',
            error="password=hunter22",
            loop_plan={"api_key": "k3y"},
            loop_key="7",
        )
    assert [word for word in ("long", "hunter22", "k3y") if word in made] == []
    assert MASK in made
    assert ('"loop_key":"7"' if form == "json" else "loop_key=7") in made  # a name of NoETL's own


def test_control_characters_are_escaped() -> None:
    assert "\x1b" not in line("json", "\x1b[2J") + line("console", "\x1b[2J \u202e")
    assert json.loads(line("json", "a\u202eb"))["msg"] == "a\u202eb"


def test_a_message_names_the_work_that_it_belongs_to() -> None:
    token = working.set(WorkItem("1:a#1", "1", "a#1", "a", 1, "hash", {}))
    try:
        assert json.loads(line("json", "it raised"))["execution_id"] == "1"
    finally:
        working.reset(token)
    assert "execution_id" not in line("json", "it raised")


def test_an_exception_is_a_field() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        record = logging.LogRecord("noetl", logging.ERROR, "", 0, "it failed", (), sys.exc_info())
    found = json.loads(LINES["json"].format(record))
    assert (found["error_class"], found["error"]) == ("ValueError", "broken")
    assert found["stack"].startswith("Traceback")


def test_levels_and_formats_are_words() -> None:
    assert logging_settings({}) == ("", "console")
    assert logging_settings({"NOETL_LOG_LEVEL": "Info", "NOETL_LOGGING_FORMAT": "json"}) == ("INFO", "json")
    assert logging_settings({"NOETL_LOG_LEVEL": "info", "NOETL_LOGGING_LEVEL": "error"})[0] == "ERROR"
    for name, word in (("LOGGING_LEVEL", "loud"), ("LOG_LEVEL", "warn"), ("LOGGING_FORMAT", "xml")):
        with pytest.raises(InvalidInput, match=f"NOETL_{name} .*{word}"):
            logging_settings({f"NOETL_{name}": word})


class _Records(logging.Handler):
    """Waits for the first record."""

    def __init__(self) -> None:
        super().__init__()
        self.first: asyncio.Future[logging.LogRecord] = asyncio.get_running_loop().create_future()

    def emit(self, record: logging.LogRecord) -> None:
        self.first.set_result(record)  # raises for a second one


async def log_twice() -> logging.LogRecord:
    logger, records = logging.getLogger(SERVER_EVENTS.name), _Records()
    logger.addHandler(records)
    try:
        for name in ("task_dlq", "step_done"):
            SERVER_EVENTS.log([Line(event=name, step_id=name)])
        async with asyncio.timeout(20):
            return await records.first
    finally:
        logger.removeHandler(records)


def test_events_that_are_close_are_one_record() -> None:
    record = asyncio.run(log_twice())
    first, second = (json.loads(line) for line in LINES["json"].format(record).splitlines())
    assert (first["event"], second["step_id"]) == ("task_dlq", "step_done")
    assert record.levelname == "WARNING"


async def log_and_end() -> None:
    SERVER_EVENTS.log([Line(event="task_dlq", step_id="last")])


def test_the_last_events_of_a_process_are_written(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(log_and_end())
    assert caplog.records == []
    SERVER_EVENTS.flush()  # as at the end of a process
    assert [record.getMessage() for record in caplog.records] == ["task_dlq"]
