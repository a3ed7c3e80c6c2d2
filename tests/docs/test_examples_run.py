"""Run every example with the real command against services on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import duckdb
import psycopg
import pytest

from tests.acceptance.running import Folder, Summary, summary, until
from tests.databases import empty_database
from tests.docs.backend import Backend, backend
from tests.docs.pages import ROOT

EXAMPLES = ROOT / "examples"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return an empty folder with a link to `examples/`, as in a clone."""
    copytree(EXAMPLES, tmp_path / "examples")
    return Folder(tmp_path)


@pytest.fixture
def api() -> Iterator[Backend]:
    with backend() as found:
        yield found


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with empty_database() as address:
        yield address


def run(folder: Folder, example: str, *given: str, status: str = "completed", **environment: str) -> Summary:
    """Run an example with values of its workload, and expect this status."""
    options = [word for value in given for word in ("--set", value)]
    found = summary(folder.call("run", f"examples/{example}.yaml", "--json", *options, **environment))
    assert found.status == status, found.data
    return found


def types(folder: Folder, execution_id: str = "last") -> list[str]:
    return [event["event_type"] for event in folder.events(execution_id)]


def test_hello_greets(folder: Folder) -> None:
    assert run(folder, "hello").result == {"message": "Hello, world!"}


def test_hello_shouts_at_long_names(folder: Folder) -> None:
    long = run(folder, "hello", "who=everybody out there")
    assert long.result == {"message": "HELLO, EVERYBODY OUT THERE!"}
    assert long.data["steps"]["shout"]["done"] == 1


def test_weather_is_loaded_after_a_retry_and_twice_without_doubles(folder: Folder, api: Backend) -> None:
    first = run(folder, "weather_to_duckdb", f"api={api.url}")
    assert first.result["rows"] == [{"city": "Lisbon", "hours": 2, "coldest": 7.0, "warmest": 11.5}]
    assert "task.attempt.failed" in types(folder), "the service was busy at first"
    again = run(folder, "weather_to_duckdb", f"api={api.url}")
    assert again.result["rows"] == first.result["rows"]
    with duckdb.connect(str(folder.path / "weather.duckdb"), read_only=True) as kept:
        assert kept.execute("SELECT count(*) FROM readings").fetchall() == [(2,)]


def test_weather_tells_why_it_was_not_loaded(folder: Folder) -> None:
    with backend(refused=frozenset({"/readings"})) as api:
        found = run(folder, "weather_to_duckdb", f"api={api.url}")
    assert found.result["message"].startswith("The readings could not be loaded: ")
    assert "summarise" not in found.data["steps"]


def test_pagination_reads_every_page(folder: Folder, api: Backend) -> None:
    assert run(folder, "pagination", f"api={api.url}").result == {"customers": 6, "orders": 2, "refunds": 4}
    assert [api.count(f"GET /{name}") for name in ("customers", "orders", "refunds")] == [3, 1, 2]


def test_fan_out_meets_in_one_profile(folder: Folder, api: Backend) -> None:
    found = run(folder, "fan_out_join", f"api={api.url}")
    assert found.result == {"score": 40.0, "open_tickets": 3, "city": "Lisbon"}
    assert found.data["steps"]["profile"]["done"] == 1


@pytest.mark.parametrize(("approved", "left"), [(True, 37), (False, 100)])
def test_approval_waits_for_an_answer(folder: Folder, approved: bool, left: int) -> None:
    with folder.started("run", "examples/approval.yaml", "--json") as process:
        until(lambda: bool(folder.ids()) and "step.suspended" in types(folder), "the question")
        assert folder.call("approve" if approved else "reject", "last", "--by", "ada").code == 0
        out, err = process.communicate(timeout=60)
    found = json.loads(out.splitlines()[-1])
    assert (process.returncode, found["status"]) == (0, "completed"), err
    assert found["result"]["failures"] == []
    assert ("delete" in found["steps"], "give_up" in found["steps"]) == (approved, not approved)
    with duckdb.connect(str(folder.path / "records.duckdb"), read_only=True) as kept:
        assert kept.execute("SELECT count(*) FROM records").fetchall() == [(left,)]


def test_a_release_is_published_when_a_person_agrees(folder: Folder) -> None:
    with folder.started("run", "examples/release.yaml", "--json") as process:
        until(lambda: bool(folder.ids()) and "step.suspended" in types(folder), "the question")
        assert folder.call("approve", "last").code == 0
        out, err = process.communicate(timeout=60)
    found = json.loads(out.splitlines()[-1])
    assert (process.returncode, found["status"]) == (0, "completed"), err
    assert found["result"] == {"message": "What is new in 1.4.0: published"}
    assert set(found["steps"]) == {"start", "test", "notes", "ready", "ask", "publish"}


def test_orders_that_were_refused_are_patched_and_imported(folder: Folder) -> None:
    assert run(folder, "import_orders", status="partial").result == {"orders": 3, "amount": 144.0}
    assert folder.call("dlq", "replay", "--all", "--patch", "item.sku=A-1").code == 0
    assert "playbook.corrected" in types(folder)


def test_a_job_is_polled_until_it_is_ready(folder: Folder, api: Backend) -> None:
    found = run(folder, "poll_job", f"api={api.url}", "pause_s=0.05")
    assert found.data["steps"]["ask"]["done"] == 3
    assert found.data["ctx"] == {"job": "export-invoices", "rounds": 3}
    assert api.asked[-1] == "GET /files/export-invoices"
    assert types(folder).count("timer.fired") == 3


def test_a_job_that_takes_too_long_is_given_up(folder: Folder, api: Backend) -> None:
    found = run(folder, "poll_job", f"api={api.url}", "pause_s=0.05", "most_rounds=2")
    assert found.result == {"message": "The export of invoices did not finish after 2 questions."}


def test_the_parameter_sweep_finds_the_best_pair(folder: Folder) -> None:
    found = run(folder, "parameter_sweep")
    assert (found.result["best"]["rate"], found.result["best"]["depth"], found.result["failed"]) == (0.03, 8, 0)
    assert found.data["ctx"] == {"best_loss": 0.0, "finished": 12}


def test_a_journey_is_booked(folder: Folder, api: Backend) -> None:
    run(folder, "clean_up", f"api={api.url}")
    assert api.asked == ["POST /flights", "POST /hotels", "POST /cars"]


def test_a_refused_car_undoes_the_journey_newest_first(folder: Folder) -> None:
    with backend(refused=frozenset({"/cars"})) as api:
        found = run(folder, "clean_up", f"api={api.url}", status="failed")
    assert found.code == 1
    assert api.asked == [
        "POST /flights",
        "POST /hotels",
        "POST /cars",
        "DELETE /hotels/hotels-1",
        "DELETE /flights/flights-1",
    ]
    finished = next(event for event in folder.events() if event["event_type"] == "playbook.finished")
    assert finished["payload"]["compensated"] is True


def test_region_reports_come_from_children(folder: Folder) -> None:
    found = run(folder, "region_reports")
    reports = found.result["add"]["reports"]
    assert [(report["region"], report["orders"]) for report in reports] == [("north", 4), ("south", 3), ("west", 5)]
    assert found.result["text"] == "2025-01-31: 2,488.75 in all regions"
    assert types(folder, found.id).count("child.finished") == 3


def test_a_region_report_runs_by_itself_and_refuses_other_regions(folder: Folder) -> None:
    assert run(folder, "region_report", "region=west").result["orders"] == 5
    refused = folder.call("run", "examples/region_report.yaml", "--set", "region=east")
    assert refused.code == 2
    assert "east" in refused.err


def test_large_results_travel_by_reference(folder: Folder) -> None:
    found = run(folder, "large_results")
    assert found.result == {"rows": 20000, "total": 9990000, "sample": {"id": 7919, "value": 561}}
    stored = next(event for event in folder.events() if event["event_type"] == "result.stored")
    assert stored["payload"]["store"] == "file"
    assert stored["payload"]["meta"]["bytes"] > 64 * 1024
    done = next(event for event in folder.events() if event["event_type"] == "step.done" and event["step"] == "measure")
    assert len(json.dumps(done)) < 10_000, "the log holds the reference, not the rows"


def test_the_quantum_sweep_finds_the_ground_state(folder: Folder) -> None:
    found = run(folder, "quantum_sweep", "queue_s=0.01")
    assert found.result["angle"] == pytest.approx(3.14159, abs=1e-4)
    assert (found.result["energy"], found.result["shots"]) == (-1.0, 32000)
    assert types(folder).count("task.attempt.failed") == 4, "the backend was calibrated before circuits 0, 5, 10 and 15"


def test_orders_in_the_io_form_go_on_where_they_stopped(folder: Folder, api: Backend, database: str) -> None:
    given = {"NOETL_CREDENTIAL_PG_MAIN": database}
    run(folder, "orders_io_form", f"api={api.url}/fresh", **given)
    with psycopg.connect(database) as kept:
        assert kept.execute("SELECT id, customer FROM orders ORDER BY id").fetchall() == [(8, "O'Hara"), (9, "Li")]
    again = run(folder, "orders_io_form", f"api={api.url}/fresh", **given)
    assert again.result == {"message": "No orders after 9."}


def test_every_waiting_row_is_claimed_once(folder: Folder, api: Backend, database: str) -> None:
    with psycopg.connect(database) as kept:
        kept.execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY, recipient TEXT, body TEXT, state TEXT)")
        rows = [(number, "nobody" if number == 4 else f"r{number}", "hi", "waiting") for number in range(1, 8)]
        kept.cursor().executemany("INSERT INTO outbox VALUES (%s, %s, %s, %s)", rows)
    given = {"NOETL_CREDENTIAL_PG_MAIN": database, "NOETL_CREDENTIAL_GATEWAY_TOKEN": "a-token-of-some-length"}
    found = run(folder, "cursor_queue", f"gateway={api.url}/send", status="partial", **given)
    assert found.code == 5
    assert found.result == {"message": "1 messages wait in the dead letters."}
    assert sorted(body["to"] for body in api.bodies) == ["nobody", "r1", "r2", "r3", "r5", "r6", "r7"]
    with psycopg.connect(database) as kept:
        states = kept.execute("SELECT state, count(*) FROM outbox GROUP BY state ORDER BY state").fetchall()
    assert states == [("sent", 6), ("taken", 1)]


def test_patterns_undo_repeat_and_deliver(folder: Folder, api: Backend) -> None:
    api.refused = frozenset({"/charge"})
    assert run(folder, "patterns/explicit_undo", f"payments={api.url}").result["booked"] is False
    api.refused = frozenset()
    assert run(folder, "patterns/explicit_undo", f"payments={api.url}").result == {"booked": True}
    with duckdb.connect(str(folder.path / "slots.duckdb")) as kept:
        assert kept.execute("SELECT confirmed FROM slots").fetchall() == [(True,)]
    for amount in (75, 80):
        given = f'totals=[{{"region": "south", "amount": {amount}}}]'
        assert run(folder, "patterns/upsert", given).result == [{"region": "south", "amount": amount}]
    for number in (1, 2):
        run(folder, "patterns/outbox", f'order={{"id": "o-{number}", "amount": 5}}')
    assert run(folder, "patterns/deliver", f"target={api.url}/events").result == {"delivered": 2, "failed": 0}
    assert run(folder, "patterns/deliver", f"target={api.url}/events").result == {"delivered": 0, "failed": 0}
    assert api.count("POST /events") == 2
    assert len(set(api.keys[-2:])) == 2


def test_no_example_is_left_out() -> None:
    source = Path(__file__).read_text(encoding="utf-8").partition("def test_no_example")[0]
    examples = {path.stem for path in EXAMPLES.glob("*.yaml") if ".test." not in path.name}
    runs = {name for name in examples if f'"{name}"' in source}
    runs |= {name for name in ("approval", "release") if f'"examples/{name}.yaml"' in source}
    assert runs == examples
