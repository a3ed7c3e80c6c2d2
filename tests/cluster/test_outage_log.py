"""Server and worker log when they lose and regain each other and the database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.cluster import KEY
from tests.cluster.process import Process
from tests.services import PostgresServer, free_port, postgres_server

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@dataclass(frozen=True)
class Pair:
    """A server and a worker with the default log level, on a database of their own."""

    postgres: PostgresServer
    server: Process
    worker: Process


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("pair")
    given = {"NOETL_HOME": str(folder / "home"), "NOETL_ENCRYPTION_KEY": KEY, "NOETL_WORKER_ID": "worker-1"}
    with postgres_server(fsync="off") as postgres:
        port = str(free_port())
        address = f"http://127.0.0.1:{port}"
        server = Process(folder, "server", "serve", "--port", port, "--store", postgres.address(), **given)
        worker = Process(folder, "worker", "worker", "--server", address, "--grace", "1", **given)
        try:
            server.start()
            server.until(r"http://\S+")
            worker.start()
            worker.until(r"noetl: worker \S+ at http")
            yield Pair(postgres, server, worker)
        finally:
            worker.end()
            server.end()


def test_the_server_logs_that_a_worker_comes_is_lost_and_comes_back(pair: Pair) -> None:
    pair.server.until(rf"{STAMP} INFO Worker worker-1 connected: pool \(default\), capacity 32\.")
    pair.worker.kill()
    pair.server.until(rf"{STAMP} WARNING Lost worker worker-1; 0 work items that it had return to the queue\.")
    pair.worker.start()
    pair.server.until(rf"{STAMP} INFO Worker worker-1 connected", 2)
    pair.worker.ask_to_end()
    pair.server.until(rf"{STAMP} INFO Worker worker-1 left\.")
    pair.worker.end()
    pair.worker.start()
    pair.server.until(rf"{STAMP} INFO Worker worker-1 connected", 3)


def test_the_worker_logs_once_that_the_server_is_lost_and_back(pair: Pair) -> None:
    pair.server.kill()
    pair.worker.until(rf"{STAMP} WARNING Lost the server http://\S+\. Trying again; work that runs continues\.")
    pair.server.start()
    pair.worker.until(rf"{STAMP} INFO Connected to the server http://\S+ after \d+\.\d s\.")
    assert pair.worker.log.count("WARNING") == 1, pair.worker.log


def test_the_server_logs_once_that_the_database_is_lost_and_back(pair: Pair) -> None:
    before = pair.server.log.count("WARNING")
    pair.postgres.stop()
    pair.server.until(
        rf"{STAMP} WARNING Lost the store PostgreSQL 127\.0\.0\.1:\d+/\w+; trying again until it is back\."
    )
    pair.postgres.start()
    pair.server.until(rf"{STAMP} INFO The store PostgreSQL \S+ is back after \d+\.\d s\.")
    assert pair.server.log.count("WARNING") == before + 1, pair.server.log
