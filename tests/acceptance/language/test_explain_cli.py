"""`noetl explain` as people call it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.acceptance.run import Ran, noetl


def explain(*arguments: str) -> Ran:
    return noetl("explain", *arguments)


@pytest.mark.parametrize(
    ("topic", "first"),
    [
        ("http", "# http\n"),
        ("NOE201", "# NOE201: unknown-arc-target\n"),
        ("loop.spec.mode", "# loop.spec.mode\n"),
        ("max_in_flight", "`max_in_flight` has 2 meanings:\n"),
        ("tojson", "# tojson\n"),
        ("ctx", "# ctx\n"),
    ],
)
def test_a_topic_is_printed_as_plain_markdown(topic: str, first: str) -> None:
    done = explain(topic)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(first)
    assert "\x1b" not in done.out


def test_without_a_topic_everything_is_listed() -> None:
    done = explain()
    assert done.code == 0
    for said in ("# Tool kinds", "- `http`: ", "# Diagnostics", "- `NOE101`: ", "# Filters", "`tojson`", "# Scopes"):
        assert said in done.out


def test_an_unknown_topic_gives_the_nearest_and_an_exit_code() -> None:
    done = explain("htpp")
    assert (done.code, done.out) == (2, "")
    assert done.err == "noetl: Unknown topic 'htpp'. Did you mean http?\n"
    done = explain("qqqqqqqqqqqq")
    assert done.code == 2
    assert "List all topics with `noetl explain`." in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_the_text_is_set() -> None:
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-m", "noetl", "explain", "wait"], stdout=theirs, stdin=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        printed = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # how Linux says that the other side is closed
                break
            if not part:
                break
            printed += part
    os.close(ours)
    assert process.returncode == 0
    text = printed.decode("utf-8")
    assert "\x1b[" in text
    assert "# wait" not in text
    assert "```" not in text
