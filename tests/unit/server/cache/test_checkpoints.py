"""Checkpoints: any state from the nearest one before it, within a bound of bytes."""

from __future__ import annotations

import pytest

from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import checksum
from noetl.model.errors import InvalidInput
from noetl.server.cache.checkpoints import Checkpoints
from noetl.server.control_plane import Store
from tests.unit.server.cache.test_tracks import Counting, ran

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("most_bytes", [0, 5_000, 1 << 20])
async def test_a_state_at_any_event_is_the_fold_up_to_it(store: Store, most_bytes: int) -> None:
    (execution_id,) = await ran(store)
    events = await store.read(execution_id)
    checkpoints = Checkpoints(store, every=10, most_bytes=most_bytes)
    for seq in [*range(len(events), -1, -7), *range(0, len(events) + 1, 5)]:
        replay = await checkpoints.replay(execution_id, seq)
        assert checksum(replay.state) == checksum(fold(execution_id, events[:seq]))


async def test_a_second_moment_reads_only_what_follows_its_checkpoint(store: Store) -> None:
    (execution_id,), log = await ran(store), Counting(store)
    last = len(await store.read(execution_id))
    checkpoints = Checkpoints(log, every=10)
    await checkpoints.replay(execution_id, last)
    assert log.events == last
    log.events = 0
    replay = await checkpoints.replay(execution_id, last)
    assert log.events <= last // 2
    replay.state.ctx["changed"] = True  # a state is the caller's own
    assert "changed" not in (await checkpoints.replay(execution_id, last)).state.ctx
    checkpoints.forget(execution_id)
    log.events = 0
    await checkpoints.replay(execution_id, last)
    assert log.events == last


async def test_an_event_that_is_not_there_is_refused(store: Store) -> None:
    (execution_id,) = await ran(store)
    with pytest.raises(InvalidInput, match="there is no event"):
        await Checkpoints(store).replay(execution_id, 9_999)
