"""Ids of executions that are started at once."""

from __future__ import annotations

from noetl.server.cache.ids import new_execution


def test_all_that_start_in_one_millisecond_have_ids_of_their_own() -> None:
    assert len({new_execution(1_794_738_681_603) for _ in range(4_096)}) == 4_096
