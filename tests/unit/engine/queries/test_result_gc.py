"""Which stored results may be deleted."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.queries.result_gc import Owner, Terms, above, addresses, may_be_unlogged, owner_of, verdict
from noetl.model.events import Event

DAY = 86_400_000
TERMS = Terms(30 * DAY, DAY)
NOW = 100 * DAY
LONG_AGO = Owner("7", logged=True, ended_at=NOW - 31 * DAY)
LATELY = Owner("7", logged=True, ended_at=NOW - 2 * DAY)
LIVE = Owner("7", logged=True, live=True)
GONE = Owner("7", logged=False)


@pytest.mark.parametrize(
    ("meta", "owner", "cause"),
    [
        ({"scope": "step"}, LIVE, None),
        ({"scope": "step"}, LATELY, "scope"),
        ({"scope": "execution"}, LATELY, None),
        ({"scope": "execution"}, LONG_AGO, "retention"),
        ({"scope": "workflow"}, LATELY, None),
        ({"scope": "workflow"}, LONG_AGO, "retention"),
        ({"scope": "permanent"}, LONG_AGO, None),
        ({"scope": "permanent"}, GONE, None),
        ({"scope": "permanent", "expires_at": NOW}, LIVE, "expired"),
        ({"scope": "execution", "expires_at": NOW + 1}, LATELY, None),
        ({"scope": "execution", "expires_at": NOW}, LIVE, "expired"),
        ({"scope": "execution"}, GONE, "removed"),
        ({"scope": "execution"}, Owner("7", logged=False, live=True), None),
        ({}, LONG_AGO, "retention"),
        ({}, None, None),
        ({"expires_at": 1}, None, "expired"),
    ],
)
def test_what_goes_and_why(meta: dict[str, Any], owner: Owner | None, cause: str | None) -> None:
    found = verdict(meta, owner, NOW, TERMS)
    assert (None if found is None else found.cause) == cause


def test_the_reason_says_when() -> None:
    found = verdict({"scope": "execution"}, LONG_AGO, NOW, TERMS)
    assert found is not None
    assert (
        found.why == "execution 7 ended at 1970-03-11T00:00:00+00:00, and its results were kept for 30 days after that"
    )


@pytest.mark.parametrize(
    ("meta", "owner", "expected"),
    [
        ({"stored_at": NOW - 3 * DAY}, LATELY, True),
        ({"stored_at": NOW - 3 * DAY}, LIVE, False),
        ({"stored_at": NOW - 3 * DAY}, None, False),
        ({"stored_at": NOW - DAY + 1}, LATELY, False),
        ({"stored_at": NOW - 3 * DAY}, Owner("7", logged=True, ended_at=NOW - DAY + 1), False),
        ({"stored_at": NOW - 3 * DAY, "artifact": True}, LATELY, False),
        ({}, LATELY, False),
    ],
)
def test_only_what_is_old_and_can_no_longer_be_reported_is_doubted(
    meta: dict[str, Any], owner: Owner | None, expected: bool
) -> None:
    assert may_be_unlogged(meta, owner, NOW, TERMS) is expected


def test_whose_an_address_is() -> None:
    assert owner_of("noetl://execution/7/step/a/task/t/run/1/attempt/1") == "7"
    assert owner_of("noetl://reports/today") is None


def _event(payload: dict[str, Any]) -> Event:
    return Event("e", "7", 1, "result.stored", 1, "worker", "result", "x", payload=payload)


def test_addresses_are_found_wherever_they_stand() -> None:
    ref = "noetl://execution/7/step/a%20b/task/t/run/1/attempt/1"
    parts = [{"ref": f"{ref}/part/0"}, {"ref": f"{ref}/part/1"}]
    assert addresses([_event({"ref": ref}), _event({"deep": [{"parts": parts, "text": "nothing"}]})]) == {
        ref,
        f"{ref}/part/0",
        f"{ref}/part/1",
    }


def test_what_an_execution_came_from() -> None:
    assert above(_event({"parent": {"execution_id": 5}})) == "5"
    assert above(_event({"forked_from": {"execution_id": "4", "seq": 2}})) == "4"
    assert above(_event({})) is None
