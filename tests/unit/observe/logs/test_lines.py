"""Log lines as JSON and for people: form, mask, the work they belong to."""

from __future__ import annotations

import asyncio
import json
import logging
import sys

import pytest

from noetl.cli.runtime.terminal import escaped
from noetl.masking.readers import ReaderMask
from noetl.masking.values import MASK, KnownValues, in_process
from noetl.model.errors import InvalidInput
from noetl.model.work import WorkItem
from noetl.observe.logs.lines import SERVER_EVENTS, ConsoleLines, JsonLines, Line, working
from noetl.settings import logging_settings

MASKED = ReaderMask(["key"])
LINES = {
    "json": JsonLines(lambda: MASKED, escaped),
    "console": ConsoleLines(lambda: MASKED, escaped, service=True),
    "command": ConsoleLines(lambda: MASKED, escaped, service=False),
}


def line(form: str, text: str, level: int = logging.INFO, **fields: object) -> str:
    record = logging.LogRecord("noetl.here", level, "", 0, text, (), None)
    record.created = 1_700_000_000.123
    if fields:
        record.lines = [Line(record.created, level, text, fields)]
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
    assert made == '2023-11-14T22:13:20.123Z INFO step_done step_id=a ok=true counters={"total":2}'
    assert line("command", "it is lost") == "noetl: it is lost"


@pytest.mark.parametrize("form", ["json", "console", "command"])
def test_no_form_shows_a_secret(form: str) -> None:
    known = KnownValues()
    with in_process(known):
        known.learn("api", {"token": 'a"long\\secret'})
        made = line(
            form, 'failed with a"long\\secret', error="password=hunter22", args={"api_key": "k3y"}, loop_key="7"
        )
    assert [word for word in ("long", "hunter22", "k3y") if word in made] == []
    assert MASK in made
    assert "loop_key" in made
    assert MASK not in made.partition("loop_key")[2]  # a name of NoETL's own


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


async def log_twice() -> None:
    for name in ("step_called", "step_done"):
        SERVER_EVENTS.log(logging.WARNING, name, {"step_id": name})
    await asyncio.sleep(0)


def test_events_of_one_pass_of_the_loop_are_one_record(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(log_twice())
    [record] = caplog.records
    first, second = (json.loads(line) for line in LINES["json"].format(record).splitlines())
    assert (first["event"], second["step_id"]) == ("step_called", "step_done")
    assert record.levelname == "WARNING"
