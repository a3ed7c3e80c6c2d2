"""Delays and the runtime's own retry."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.grammar import LEVELS
from noetl.engine.tasks.retry import (
    MOST_ASKED_MS,
    Schedule,
    asked_ms,
    chance,
    delay_ms,
    delivery_delay_ms,
    may_run_again,
    runtime_schedule,
)
from noetl.model.outcome import ErrorKind, TaskError


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        ("none", [100, 100, 100, 100]),
        ("fixed", [100, 100, 100, 100]),
        ("linear", [100, 200, 300, 400]),
        ("exponential", [100, 200, 400, 800]),
    ],
)
def test_how_delays_grow(backoff: str, delays: list[int]) -> None:
    schedule = Schedule(9, 100, backoff)
    assert [delay_ms(schedule, retry, 0.9) for retry in (1, 2, 3, 4)] == delays


def test_the_cap_holds() -> None:
    assert [delay_ms(Schedule(9, 100, "exponential", 250), retry, 0.5) for retry in (1, 2, 3)] == [100, 200, 250]


@given(
    st.floats(0, 1e9),
    st.sampled_from(["none", "fixed", "linear", "exponential"]),
    st.floats(0, 1e9),
    st.floats(0, 1),
    st.integers(1, 10_000),
    st.floats(0, 1, exclude_max=True),
)
def test_no_delay_is_above_the_cap(
    delay: float, backoff: str, cap: float, jitter: float, retry: int, drawn: float
) -> None:
    assert 0 <= delay_ms(Schedule(99, delay, backoff, cap, jitter), retry, drawn) <= cap


@given(st.integers(1, 5_000), st.sampled_from(["none", "linear", "exponential"]))
def test_delays_without_a_cap_stay_numbers(retry: int, backoff: str) -> None:
    assert 0 <= delay_ms(Schedule(9_999, 1e12, backoff), retry, 0.99) <= 2**52


def test_jitter_spreads_around_the_delay() -> None:
    schedule = Schedule(9, 1_000, jitter=0.5)
    assert [delay_ms(schedule, 1, drawn) for drawn in (0.0, 0.5, 0.75)] == [500, 1000, 1250]


def test_chance_depends_on_its_arguments_only() -> None:
    assert chance("seed", "key", 1) == chance("seed", "key", 1)
    drawn = {chance("seed", "key", attempt) for attempt in range(100)}
    assert len(drawn) == 100
    assert all(0 <= number < 1 for number in drawn)


def test_the_runtime_schedule_has_defaults_and_settings() -> None:
    assert runtime_schedule({}) == Schedule(6, 200, "exponential", 30_000, 0.5)
    given_ = {"retries": {"plugin": {"max_attempts": 2, "base_ms": 5, "max_ms": 7}}}
    assert runtime_schedule(given_) == Schedule(2, 5, "exponential", 7, 0.5)


def test_a_write_has_more_patience_where_nobody_says_otherwise() -> None:
    assert runtime_schedule({}, stores=True) == Schedule(8, 200, "exponential", 60_000, 0.5)
    plugin = {"retries": {"plugin": {"max_attempts": 2, "max_ms": 9}}}
    assert runtime_schedule(plugin, stores=True) == Schedule(2, 200, "exponential", 9, 0.5)
    sink = {"retries": {"plugin": {"max_attempts": 2}, "sink": {"max_attempts": 3, "base_ms": 1}}}
    assert runtime_schedule(sink, stores=True) == Schedule(3, 1, "exponential", 60_000, 0.5)


@given(
    st.integers(1, 50),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.integers(1, 200),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(["plugin", "sink", "dispatch"]),
)
def test_no_runtime_delay_is_above_its_cap(
    attempts: int, base: int, cap: int, retry: int, drawn: float, which: str
) -> None:
    settings = {"retries": {which: {"max_attempts": attempts, "base_ms": base, "max_ms": cap}}}
    if which == "dispatch":
        found = delivery_delay_ms(settings["retries"], retry, drawn)
    else:
        found = delay_ms(runtime_schedule(settings, which == "sink"), retry, drawn)
    wanted = min(base * 2 ** (retry - 1), cap)
    assert min(wanted, cap) // 2 <= found <= cap  # half of it at least, and never above the cap


@pytest.mark.parametrize(("level", "stores"), [("retry_limits", False), ("sink_limits", True)])
def test_the_defaults_are_those_of_the_reference(level: str, stores: bool) -> None:
    written = {field.name: int(field.default or 0) for field in LEVELS[level].fields}
    found = runtime_schedule({}, stores)
    assert (found.attempts, found.delay_ms, found.max_ms) == tuple(
        written[name] for name in ("max_attempts", "base_ms", "max_ms")
    )


def test_lost_work_goes_out_at_once_unless_a_delay_is_asked_for() -> None:
    assert [delivery_delay_ms(none, 3, 0.9) for none in (None, {}, {"dispatch": {"max_attempts": 9}})] == [0, 0, 0]
    assert [delivery_delay_ms({"dispatch": {"base_ms": 100}}, n, 0.5) for n in (1, 2, 3, 99)] == [100, 200, 400, 30_000]


@pytest.mark.parametrize(
    ("asked", "waits"),
    [
        (None, 0), (0, 0), (-5, 0), (1.5, 1_500), (86_400, MOST_ASKED_MS), (1e9, MOST_ASKED_MS),
        (float("inf"), MOST_ASKED_MS), (float("nan"), 0),
    ],
)  # fmt: skip
def test_what_the_other_side_asks_for_is_held_to_a_day(asked: float | None, waits: int) -> None:
    assert asked_ms(TaskError("rate_limit", "m", retry_after=asked)) == waits
    assert asked_ms(None) == 0


def _error(kind: ErrorKind = "connection", sent: bool = False, retryable: bool = True, code: str = "X") -> TaskError:
    return TaskError(kind, "m", code=code, retryable=retryable, sent=sent)


@pytest.mark.parametrize(
    ("kind", "fields", "error", "idempotent", "again"),
    [
        ("http", {"method": "POST"}, _error(), False, True),
        ("http", {"method": "POST"}, _error(retryable=False), True, False),
        ("http", {"method": "POST"}, _error(sent=True), False, False),
        ("http", {"method": "post"}, _error(sent=True), True, True),
        ("http", {"method": "get"}, _error(sent=True), False, True),
        ("http", {}, _error(sent=True), False, True),
        ("http", {"method": "PUT"}, _error(sent=True), False, True),
        ("http", {"method": "DELETE"}, _error(sent=True), False, True),
        ("http", {"method": "PATCH"}, _error(sent=True), False, False),
        ("http", {"method": "POST"}, _error("timeout", code="HTTP_408"), False, True),
        ("http", {"method": "POST"}, _error("timeout", code=""), False, False),
        ("postgres", {"query": "SELECT 1"}, _error("db_connection", sent=True), False, True),
        ("postgres", {"command": "INSERT INTO t VALUES (1)"}, _error("db_connection", sent=True), False, False),
        ("postgres", {"command": "DELETE FROM t", "transactional": True}, _error(sent=True), False, True),
        ("postgres", {"commands": ["SELECT 1", "UPDATE t SET a = 1"]}, _error(sent=True), False, False),
        ("postgres", {"commands": ["SELECT 1", "SELECT 2"]}, _error(sent=True), False, True),
        ("postgres", {"table": "t"}, _error(sent=True), False, False),
        ("postgres", {"table": "t", "mode": "insert"}, _error(sent=True), False, False),
        ("postgres", {"table": "t", "mode": "upsert"}, _error(sent=True), False, True),
        ("duckdb", {"table": "t", "mode": "overwrite"}, _error("timeout"), False, True),
        ("transfer", {"mode": "append"}, _error("timeout"), False, False),
        ("artifact", {"action": "put"}, _error("timeout"), False, True),
        ("postgres", {"command": "INSERT INTO t VALUES (1)"}, _error("db_deadlock"), False, True),
        ("python", {}, _error("timeout"), False, False),
        ("python", {}, _error("timeout"), True, True),
        ("python", {}, _error("python"), False, True),
        ("shell", {}, _error("timeout"), False, False),
    ],
)
def test_what_may_have_taken_effect_is_repeated_only_where_that_is_harmless(
    kind: str, fields: dict[str, Any], error: TaskError, idempotent: bool, again: bool
) -> None:
    assert may_run_again(kind, fields, error, idempotent) is again
