"""`noetl schedule` on a server of its own: made, shown, fired, paused, deleted."""

from __future__ import annotations

import json
import re

from tests.acceptance.running import Folder, until
from tests.server.serving import process


def test_a_schedule_from_its_creation_to_its_end(folder: Folder) -> None:
    file = folder.playbook("- step: say\n  tool: { kind: noop, result: '{{ workload.day }}' }", workload={"day": ""})
    with process(folder.path, "up") as (url, _):
        where = ("--server", url)
        assert folder.call("register", file, *where).code == 0
        made = folder.call(
            "schedule", "create", "tick", "test/play", "--every", "1s", "--overlap", "allow", "--time-as", "day",
            "--tz", "Europe/Vienna", *where,
        )  # fmt: skip
        assert made.code == 0, made.err
        assert re.search(r"created schedule tick, next: \S+[+]0[12]:00 Europe/Vienna$", made.err, re.MULTILINE)
        listed = folder.call("schedule", "list", *where).out
        assert re.search(r" every 1s +\S+[+]0[12]:00 Europe/Vienna +test/play$", listed, re.MULTILINE)

        def firings() -> list[dict[str, str]]:
            shown = folder.call("schedule", "show", "tick", "--json", *where)
            return list(json.loads(shown.out)["firings"])

        until(lambda: any(one["state"] == "ended" for one in firings()), "an execution of the schedule has ended")
        fired = next(one for one in firings() if one["state"] == "ended")
        status = json.loads(folder.call("status", fired["execution_id"], "--json", *where).out)
        assert status["result"] == fired["local"]
        assert "paused schedule tick, next: paused" in folder.call("schedule", "pause", "tick", *where).err
        assert "every 1s" in folder.call("schedule", "list", *where).out
        coming = folder.call("schedule", "next", "tick", "--count", "3", *where)
        assert len(coming.out.splitlines()) == 3
        assert "is paused" in coming.err
        assert folder.call("schedule", "resume", "tick", *where).code == 0
        shown = folder.call("schedule", "show", "tick", *where)
        assert "every 1s (Europe/Vienna) starts test/play" in shown.out
        assert folder.call("schedule", "delete", "tick", *where).code == 0
        assert "no schedules" in folder.call("schedule", "list", *where).err


def test_mistakes_are_told_without_a_trace(folder: Folder) -> None:
    assert "Schedules fire on a server" in folder.call("schedule", "list").err
    file = folder.playbook("- step: say\n  tool: { kind: noop }")
    with process(folder.path, "up") as (url, _):
        where = ("--server", url)
        assert folder.call("register", file, *where).code == 0
        for arguments, text in (
            (("--cron", "61 * * * *"), "bad minute"),
            (("--every", "1h", "--tz", "Mars"), "'Mars' is no time zone"),
            (("--date", "x"), "'x' is no day"),
            (("--date", "2020-01-01"), "no time to come"),
            (("--at", "08:00"), "needs --date"),
            ((), "has no time"),
        ):
            ran = folder.call("schedule", "create", "s", "test/play", *arguments, *where)
            assert ran.code != 0
            assert text in ran.err
            assert "Traceback" not in ran.err
        made = ("--cron", "0 2 * * *", "--tz", "Asia/Tokyo")
        assert folder.call("schedule", "create", "nightly", "test/play", *made, *where).code == 0
        for first, end, text in (
            ("1900-01-01", "2026-01-02", "`--from` is 1900-01-01, which is before 1970"),
            ("2026-01-02", "2026-01-01", "`--to` is 2026-01-01, which is not after `--from`, 2026-01-02"),
            ("2026-01-01T03:00", "2026-01-01T04:00", "no time in this range (--from, --to)"),
        ):
            ran = folder.call("schedule", "backfill", "nightly", "--from", first, "--to", end, *where)
            assert ran.code == 2
            assert text in ran.err
        range_ = ("--from", "2026-01-01", "--to", "2026-01-03", "--dry-run")
        dry = folder.call("schedule", "backfill", "nightly", *range_, *where)
        assert "2026-01-01T02:00:00+09:00 Asia/Tokyo to 2026-01-02T02:00:00+09:00 Asia/Tokyo" in dry.err
        assert "No schedule s" in folder.call("schedule", "show", "s", *where).err
