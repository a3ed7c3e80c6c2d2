"""Real processes whose clocks are set, differ or stand still.

A wait that follows the wrong clock is late by an hour or more, so that it ends at all within the patience of a test shows
that it is in time. A lease that is judged by the wrong clock begins its step again, which leaves a second line. The cases
mostly wait: some run side by side, each with a store and processes of its own, and each test has the outcome of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from time import sleep, time
from typing import Any

import pytest

from tests.cluster.skew import LEASE_S, PLAYBOOK, Place, ended, execute, place, until
from tests.services import PostgresServer, postgres_server

HOUR_S, DAY_S = 3_600, 86_400
SERVERS = (600, -600)
NAP = """
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: nap, path: clocks/nap }
workflow:
  - step: nap
    tool: { kind: sleep, %s }
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server(fsync="off", shared_buffers="32MB") as server:
        yield server


Case = Callable[[Place], None]
CASES: list[tuple[Case, str]] = []  # each with the kind of its store, longest first
AT_ONCE = 5  # more would make the machine so busy that leases end


def case(*kinds: str) -> Callable[[Case], Case]:
    """Run a function on a store of each of these kinds."""

    def add(function: Case) -> Case:
        CASES.extend((function, kind) for kind in kinds)
        return function

    return add


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer
) -> Iterator[dict[str, Future[None]]]:
    """Begin the selected cases."""

    def run(function: Case, kind: str) -> None:
        with place(tmp_path_factory.mktemp(f"{function.__name__[:20]}_{kind}"), kind, postgres) as found:
            function(found)

    selected = {item.name for item in request.session.items}
    pool = ThreadPoolExecutor(AT_ONCE)
    wanted = [one for one in CASES if f"test_clocks[{name_of(*one)}]" in selected]
    yield {name_of(*one): pool.submit(run, *one) for one in wanted}
    pool.shutdown(cancel_futures=True)


def name_of(function: Case, kind: str) -> str:
    return f"{function.__name__}-{kind}"


def hold(events: list[dict[str, Any]]) -> None:
    """Check that no lease was lost, no timer was early, and time did not go back."""
    types = [event["event_type"] for event in events]
    started = [event["entity_id"] for event in events if event["event_type"] == "step.started"]
    assert started == ["work", "nap", "last"], types
    assert types.count("step.woken") == 1, types  # a wait ends as the same run
    assert "report.late" not in types
    due = next(event["payload"]["at"] for event in events if event["event_type"] == "timer.set")
    fired = next(event["timestamp"] for event in events if event["event_type"] == "timer.fired")
    assert fired >= due
    times = [event["timestamp"] for event in events if event["source"] == "server"]
    assert times == sorted(times)


@case("sqlite", "postgres")
def a_server_whose_clock_is_set_while_a_step_and_a_wait_run(found: Place) -> None:
    server, client = found.server()
    for number, jump in enumerate((HOUR_S, -HOUR_S, -DAY_S), 1):
        server.set(0)
        execution_id = execute(client, n=number)
        until(lambda n=number: len(found.lines("begun.txt")) == n, "the step")
        server.set(jump)
        hold(ended(client, execution_id))
    assert found.lines("begun.txt") == found.lines("ended.txt") == ["1", "2", "3"]


@case("sqlite")
def a_machine_that_sleeps_for_hours_renews_its_leases_before_it_judges_them(found: Place) -> None:
    server, client = found.server()
    execution_id = execute(client, n=1)
    until(lambda: found.lines("begun.txt") == ["1"], "the step")
    server.set(8 * HOUR_S, 8 * HOUR_S)  # both clocks count the sleep; the one of the event loop does not
    hold(ended(client, execution_id))
    assert found.lines("begun.txt") == found.lines("ended.txt") == ["1"]


@case("sqlite", "postgres")
def a_process_that_is_frozen_for_longer_than_a_lease_goes_on(found: Place) -> None:
    server, client = found.server()
    execution_id = execute(client, n=1)
    until(lambda: found.lines("begun.txt") == ["1"], "the step")
    server.freeze()
    sleep(LEASE_S + 1)  # the fault itself: nothing shows that a lease is over while its only judge is frozen
    server.thaw()
    hold(ended(client, execution_id))
    assert found.lines("begun.txt") == found.lines("ended.txt") == ["1"]


@case("sqlite", "postgres")
def two_servers_600_s_apart_begin_every_execution_once(found: Place) -> None:
    clients = [found.server(ahead_s=ahead_s)[1] for ahead_s in SERVERS]
    started = [(clients[number % 2], execute(clients[number % 2], n=number)) for number in range(8)]
    for client, execution_id in started:
        hold(ended(client, execution_id))
    assert found.lines("begun.txt") == found.lines("ended.txt") == [str(number) for number in range(8)]


@case("sqlite", "postgres")
def a_worker_follows_the_clock_of_its_server(found: Place) -> None:
    _, client = found.server("serve")
    worker = found.start("worker", "--server", str(client.base_url), ahead_s=-DAY_S)
    worker.until(r"The system clock is 86\d\d\d\.\d s behind the server's clock\.")
    events = ended(client, execute(client, n=1))
    hold(events)
    times = [event["timestamp"] for event in events]
    assert min(times) == times[0]


@case("sqlite")
def a_point_of_civil_time_follows_a_clock_that_is_set(found: Place) -> None:
    server, client = found.server()
    noon = datetime.fromtimestamp(time() + HOUR_S, UTC).isoformat()
    waits, naps = execute(client, NAP % f'until: "{noon}"'), execute(client, NAP % "seconds: 7200")
    until(lambda: all(_has_timer(client, one) for one in (waits, naps)), "the waits")
    server.set(HOUR_S)
    ended(client, waits)
    assert client.get(f"/api/executions/{naps}").json()["status"] == "running"


@case("sqlite", "postgres")
def a_server_tells_how_its_clock_differs(found: Place) -> None:
    server, client = found.server()
    assert client.get("/health").json()["checks"] == {"clock": "ok"}
    execution_id = execute(client, n=1)
    until(lambda: found.lines("begun.txt") == ["1"], "the step")
    server.set(HOUR_S)
    server.until(r"The system clock is 3\d\d\d\.\d s ahead of .*Synchronize it")
    assert "ahead of" in client.get("/health").json()["checks"]["clock"]
    ended(client, execution_id)
    if found.store.startswith("postgresql"):
        assert "ahead of the database's clock" in client.get("/ready").json()["checks"]["clock"]
        server.set(0)
    until(lambda: client.get("/health").json()["checks"] == {"clock": "ok"}, "the right time")
    ended(client, execute(client, PLAYBOOK, n=2))


def _has_timer(client: Any, execution_id: str) -> bool:
    events = client.get(f"/api/executions/{execution_id}/events").json()["events"]
    return any(event["event_type"] == "timer.set" for event in events)


@pytest.mark.parametrize("name", [name_of(*one) for one in CASES])
def test_clocks(name: str, outcomes: dict[str, Future[None]]) -> None:
    outcomes[name].result()
