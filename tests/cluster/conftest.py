"""One cluster for tests without faults, one for tests with them, in one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, cluster
from tests.cluster.ledger import Ledger, ledger

OUTBOX = {"NOETL_OUTBOX_TIMEOUT_MS": "1000", "NOETL_OUTBOX_BASE_MS": "50", "NOETL_OUTBOX_MAX_MS": "200"}


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("cluster")
    with cluster(folder) as running:
        yield running


@pytest.fixture(scope="session")
def shaken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with short leases, whose processes tests may kill and must restart."""
    folder: Path = tmp_path_factory.mktemp("shaken")
    given = {"NOETL_LEASE_SECONDS": "2", "NOETL_MAX_ATTEMPTS": "50", "NOETL_LOG_LEVEL": "warning"}
    given |= {"NOETL_LIVENESS_SECONDS": "1", **OUTBOX}
    with cluster(folder, **given) as running:
        yield running


@pytest.fixture
def book() -> Iterator[Ledger]:
    with ledger() as found:
        yield found
