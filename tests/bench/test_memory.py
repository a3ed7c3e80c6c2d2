"""The memory of both forms under a few executions of each kind of real work."""

from __future__ import annotations

from bench.memory import Memory, Watched, growth_mb, main, section


def test_both_forms_run_every_kind_and_are_watched(forked: None) -> None:
    found = main(["--minutes", "0.0167", "--pace", "8"])
    assert list(found.forms) == ["embedded", "cluster"]
    for watched in found.forms.values():
        assert watched.executions == 8  # one of each kind
        assert all(len(series) == len(watched.minutes) for series in watched.mb.values())
        assert min(watched.mb["server"]) > 10
    assert set(found.forms["cluster"].mb) == {"server", "worker", "tasks"}


def test_growth_is_that_after_the_first_ten_minutes() -> None:
    minutes = [float(minute) for minute in range(60)]
    flat = [50.0 + 10 * minute if minute < 10 else 150.0 for minute in range(60)]
    leak = [100.0 + minute for minute in range(60)]
    watched = Watched(480, minutes, {"server": flat, "worker": leak})
    assert growth_mb(watched, "server") == 0
    assert growth_mb(watched, "worker") == 40
    page = section(Memory("2026-11-17", 8, {"cluster": watched}))
    assert "| cluster | 480 | server | 95.0 | 150.0 | 150.0 | 150.0 | 150.0 | 150.0 | +0.0 |" in page
    assert "| +40.0 |" in page
