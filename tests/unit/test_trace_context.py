"""Trace contexts: their form, who has one, which are sampled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.trace_context import (
    TraceContext,
    is_sampled,
    new_trace,
    parse_traceparent,
    span_id_of,
    trace_headers,
    trace_id_of,
    trace_of,
)

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_traceparent_is_read_and_written() -> None:
    found = parse_traceparent(GIVEN)
    assert found == TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", True)
    assert str(found) == GIVEN
    assert parse_traceparent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more") is not None


@pytest.mark.parametrize(
    "text",
    ["", "00-a", "ff" + GIVEN[2:], GIVEN.upper(), f"00-{'0' * 32}-b7ad6b7169203331-01", f"00-{'a' * 32}-{'0' * 16}-01"],
)
def test_what_is_no_traceparent_is_none(text: str) -> None:
    assert parse_traceparent(text) is None


def test_an_execution_has_a_trace_if_the_server_traces_or_its_caller_does() -> None:
    settings = {"sample_rate": 0.0}
    assert trace_of("1", "", {}, None) is None
    assert trace_of("1", "", {}, settings) == (trace_id_of("1"), span_id_of("1"), False)
    assert trace_of("1", "", {"trace": True}, settings) == (trace_id_of("1"), span_id_of("1"), True)
    assert trace_of("1", GIVEN, {}, None) == ("0af7651916cd43dd8448eb211c80319c", span_id_of("1"), True)
    assert trace_of("1", GIVEN[:-2] + "00", {}, {"sample_rate": 1.0}) == (GIVEN[3:35], span_id_of("1"), False)


@given(st.integers(0, 2**60), st.floats(0, 1), st.floats(0, 1))
def test_who_is_sampled_at_a_rate_is_sampled_at_any_higher_one(number: int, low: float, high: float) -> None:
    trace_id, rates = trace_id_of(str(number)), sorted((low, high))
    assert is_sampled(trace_id, rates[0]) <= is_sampled(trace_id, rates[1])
    assert is_sampled(trace_id, 1)
    assert not is_sampled(trace_id, 0)


def test_the_share_is_that_of_the_rate() -> None:
    assert 900 < sum(is_sampled(trace_id_of(str(number)), 0.1) for number in range(10_000)) < 1100


def test_a_made_up_trace_has_no_span_outside() -> None:
    found = parse_traceparent(new_trace("0af7651916cd43dd8448eb211c80319c"))
    assert found is not None
    assert found.sampled
    assert found.is_made_up
    assert not TraceContext(*parse_traceparent(GIVEN) or ()).is_made_up


def test_headers_name_what_asks() -> None:
    made = trace_headers(GIVEN, "a" * 16, "7", "fetch ü,=;", "7:fetch#1")
    assert made == {
        "traceparent": f"00-{GIVEN[3:35]}-{'a' * 16}-01",
        "tracestate": "noetl=e:7;s:fetch_____;m:7:fetch#1",
    }
    assert trace_headers("", "a" * 16, "7", "s", "m") == {}
