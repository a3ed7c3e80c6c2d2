"""A server and its worker that are killed together go on after a restart."""

from __future__ import annotations

from pathlib import Path

import psycopg

from noetl.settings import Settings
from tests.acceptance.running import until
from tests.acceptance.servers.test_up_killed import completed, count, start
from tests.cluster.process import Process
from tests.services import free_port, postgres

WITHIN_S = 15
LEASE_S = 4  # longer than a stall of a busy machine


def test_a_server_and_its_worker_that_are_killed_together_go_on(tmp_path: Path) -> None:
    port, given = str(free_port()), {"NOETL_LEASE_SECONDS": str(LEASE_S)}
    url = f"http://127.0.0.1:{port}"
    with postgres() as address:
        server = Process(tmp_path, "server", "serve", "--port", port, "--store", address, **given)
        worker = Process(
            tmp_path, "worker", "worker", "--server", url, **given
        )  # its name has the number of its process
        try:
            server.start()
            server.until(r"noetl: http://\S+")
            worker.start()
            worker.until(r"noetl: worker \S+ at http")
            started = start(url, tmp_path)
            server.kill()
            worker.kill()
            with psycopg.connect(address) as connection:  # nothing extends this lease any more
                query = "SELECT extract(epoch FROM lease_until - now()) FROM noetl.queue"
                [(left,)] = connection.execute(query).fetchall()
            assert left <= LEASE_S
            server.start()
            worker.start()
            until(lambda: count(tmp_path, "started") == 2, "the second start of the task")
            (tmp_path / "open").touch()
            completed(url, started)
        finally:
            worker.end()
            server.end()


def test_leases_run_out_before_people_wait() -> None:
    assert Settings(Path("noetl.db")).lease_ms < WITHIN_S * 1000
