"""Results are saved, loaded, shown and compared; a loss above 15 % is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from bench.flame import Flame
from bench.report import console, page
from bench.results import Result, Results, lost, unlike

FUNCTIONS = {"decide (noetl/engine/handlers/decide.py)": 0.2}


def run(own: float, peer: float, *, problem: str = "") -> Results:
    """Make a run with the given milliseconds per step on each side."""
    results = (
        Result.of("embedded", "W1", 200, [{"ms_per_step": own}, {"ms_per_step": own}, {"ms_per_step": 99.0}]),
        Result.of("limit-embedded", "W1", 200, [{"ms_per_step": 1.0}]),
        Result.of("limit-cluster", "W1", 200, [{"ms_per_step": 1.0}]),
        Result.of("pgqueuer", "W1", 200, [] if problem else [{"ms_per_step": peer}], problem),
    )
    return Results("2020-01-02", {"noetl": "0"}, "", "full", 3, {"pgqueuer": "pgqueuer==1"}, (0.1, 0.2), results)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text(run(2.0, 8.0).text())
    assert Results.read(path) == run(2.0, 8.0)


def test_a_median_and_a_ratio() -> None:
    results = run(2.0, 8.0)
    assert results.value("embedded", "W1") == 2.0
    assert results.better("embedded", "pgqueuer", "W1") == 4.0
    assert results.better("embedded", "limit-embedded", "W1") == 0.5
    assert results.better("cluster", "pgqueuer", "W1") is None
    assert results.others("embedded") == ["limit-embedded", "pgqueuer"]


def test_sides_that_did_less_are_compared_by_item() -> None:
    rows = (
        Result.of("embedded", "R9", 10_000, [{"last_s": 10.0, "cpu_ms_each": 1.0}]),
        Result.of("dbos-sqlite", "R9", 1_000, [{"last_s": 6.0, "cpu_ms_each": 3.0}]),
    )
    results = Results("2020-01-02", {"noetl": "0"}, "", "full", 1, {}, (0.1, 0.2), rows)
    assert results.better("embedded", "dbos-sqlite", "R9") == 6.0


@pytest.mark.parametrize(
    ("own", "peer", "worse"), [(2.0, 8.0, False), (2.3, 8.0, False), (2.4, 8.0, True), (4.0, 16.0, True)]
)
def test_a_loss_is_measured_against_all_others(own: float, peer: float, worse: bool) -> None:
    """On a machine half as fast, ratios to the peer stay, those to the limit change."""
    assert bool(lost(run(own, peer), run(2.0, 8.0))) is worse


def test_nothing_is_compared_with_what_was_not_measured() -> None:
    assert lost(run(2.0, 0.0, problem="no uv"), run(2.0, 8.0)) == []


def test_runs_of_other_machines_and_sizes_are_not_compared() -> None:
    before = run(2.0, 8.0)
    larger = Result.of("embedded", "W1", 500, [{"ms_per_step": 2.0}])
    now = structs.replace(before, machine={"processors": "64 × x86_64"}, results=(larger,))
    assert unlike(before, before) == []
    assert unlike(now, before) == [
        "processors was None and is 64 × x86_64",
        "the size of W1 for embedded was 200 and is 500",
    ]


def test_a_later_run_takes_the_place_of_its_workloads() -> None:
    before = run(2.0, 8.0)
    load = Result.of("embedded", "W10", 30, [{"executions_per_s": 100.0}])
    longer = Result.of("embedded", "W10", 300, [{"executions_per_s": 90.0}])
    later = structs.replace(before, flush_ms=(0.05, 0.1), results=(longer,))
    joined = structs.replace(before, results=(*before.results, load)).joined(later)
    assert [(one.side, one.size) for one in joined.results if one.workload == "W10"] == [("embedded", 300)]
    assert joined.results[: len(before.results)] == before.results
    assert joined.flush_ms == (0.05, 0.2)
    assert joined.note == "W10 in a run of its own on 2020-01-02."


def test_a_side_that_was_given_less_to_do_is_marked() -> None:
    before = run(2.0, 8.0)
    results = structs.replace(
        before, results=(*before.results, Result.of("airflow", "W1", 10, [{"ms_per_step": 900.0}], "", [0.1, 0.3, 0.2]))
    )
    assert "900 (10) |" in page(results, {})
    assert "airflow          900 ms a step, at a size of 10, flush 0.2 ms" in console(results)
    assert results.better("embedded", "airflow", "W1") == 450.0


def test_a_figure_that_only_some_sides_have_is_shown_and_one_that_an_older_run_lacks_is_not() -> None:
    before, own = run(2.0, 8.0), {"steps_per_s": 4_000.0, "apart_steps_per_s": 3_000.0}
    peer = Result.of("pgqueuer", "W3", 200, [{"steps_per_s": 400.0}])
    now = structs.replace(before, results=(Result.of("embedded", "W3", 200, [own]), peer))
    older = structs.replace(before, results=(Result.of("embedded", "W3", 200, [{"steps_per_s": 2_000.0}]), peer))
    assert "|  | steps/s, a request each | 3,000 |  |" in page(now, {})
    assert "W3: NoETL gets all executions in one request" in page(now, {})
    assert "embedded         4,000 steps/s, 3,000 steps/s, a request each" in console(now)
    assert "request" not in page(older, {})
    assert now.better("embedded", "pgqueuer", "W3") == 10.0


def test_a_peer_that_failed_is_told_with_its_reason() -> None:
    results = run(2.0, 8.0, problem="no uv")
    assert "pgqueuer         no uv" in console(results)
    assert "- pgqueuer, W1: no uv" in page(results, {})


def test_the_noise_between_rounds_is_told() -> None:
    assert run(2.0, 8.0).spreads() == [49.5]
    assert "differ 49.5-fold (median), 49.5-fold (maximum)" in page(run(2.0, 8.0), {})


def test_the_page_shows_runs_on_other_machines() -> None:
    text = page(run(2.0, 8.0), {}, elsewhere={"small": run(6.0, 12.0)})
    assert "### small" in text
    assert "| W1 | embedded | 0.5 |  | 4 |" in text[: text.index("### small")]
    assert "| W1 | embedded | 0.167 |  | 2 |" in text[text.index("### small") :]


def test_the_page_shows_ratios() -> None:
    assert "| W1 | embedded | 0.5 |  | 4 |" in page(run(2.0, 8.0), {})
    assert "no results yet" in page(None, {})


def test_the_page_links_the_pictures_and_tells_the_shares() -> None:
    text = page(run(2.0, 8.0), {"w1-cluster-server": Flame(1_234, {"noetl.engine": 0.5, "other": 0.001}, FUNCTIONS)})
    assert (
        "| [w1-cluster-server](../flames/w1-cluster-server.svg) | 1,234 | noetl.engine 50% | `engine/handlers/decide.py decide` 20% |"
        in text
    )
