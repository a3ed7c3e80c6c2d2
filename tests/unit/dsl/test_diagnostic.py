"""Suggestions of names: what people mistype, among few names and among very many."""

import pytest

from noetl.dsl.diagnostic import Suggestions, nearest

MANY = [f"step_{number}" for number in range(15_000)]


@pytest.mark.parametrize("known", [["load", "fetch_rows"], [*MANY, "load", "fetch_rows"]], ids=["few", "many"])
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("lod", "load"),
        ("Fetch-Rows", "fetch_rows"),
        ("fetch_rwos", "fetch_rows"),
        ("zzz", None),
        ("", None),
        ("l" * 101, None),
    ],
)
def test_the_closest_name_is_found(written: str, meant: str | None, known: list[str]) -> None:
    assert nearest(written, known) == meant


def test_a_name_in_another_case_is_found_among_names_that_are_all_alike() -> None:
    assert nearest("STEP-14999", MANY) == "step_14999"


def test_only_the_first_names_of_a_document_are_looked_up() -> None:
    suggestions = Suggestions()
    found = [suggestions.nearest("lod", ["load"]) for _ in range(30)]
    assert found == ["load"] * 20 + [None] * 10
