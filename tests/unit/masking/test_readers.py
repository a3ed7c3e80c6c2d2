"""What is shown is masked by name and by value; the rest is the same object."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.masking.readers import ReaderMask
from noetl.masking.texts import mask_text
from noetl.masking.values import MASK, KnownValues, in_process
from noetl.wire.answers import TokenMade, Variable

MASKED = ReaderMask().data
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="abc {}[]"),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["rows", "n", "token_count", "page_token"]), inner),
)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"password": "x", "user": "u"}, {"password": MASK, "user": "u"}),
        ({"password": 1234, "token": None, "secret": True, "auth": ""}, {"password": MASK, "token": None, "secret": True, "auth": ""}),
        ({"a": [{"apiKey": "k"}]}, {"a": [{"apiKey": MASK}]}),
        ({"credentials": {"user": "u", "n": [1]}}, {"credentials": {"user": MASK, "n": [MASK]}}),
        ({"name": "DB_PASSWORD", "value": "x"}, {"name": "DB_PASSWORD", "value": MASK}),
        ({"key": "colour", "value": "red"}, {"key": "colour", "value": "red"}),
        ({"key": "password", "value": "red"}, {"key": "password", "value": MASK}),
        ({"path": "workload.password", "before": 1, "after": 2}, {"path": "workload.password", "before": MASK, "after": MASK}),
        ({"workload.password": "(secret)"}, {"workload.password": "(secret)"}),
        ({"url": "postgresql://u:pw@h/d"}, {"url": f"postgresql://u:{MASK}@h/d"}),
        ({"url": "https://h/?api_key=abc&n=1"}, {"url": f"https://h/?api_key={MASK}&n=1"}),
        ({"body": '{"password": "x", "n": "1"}'}, {"body": f'{{"password": "{MASK}", "n": "1"}}'}),
        ({"body": "password: see below"}, {"body": "password: see below"}),
        ({"header": "Bearer abcdefghijklmnop"}, {"header": f"Bearer {MASK}"}),
        ({"steps": {"get_token": {"done": 1}}}, {"steps": {"get_token": {"done": 1}}}),
        (
            {"event_type": "x", "payload": {"key": "row 7", "payload": {"key": "k"}}},
            {"event_type": "x", "payload": {"key": "row 7", "payload": {"key": MASK}}},
        ),
    ],
)  # fmt: skip
def test_values_under_the_name_of_a_secret_are_masked(data: Any, shown: Any) -> None:
    assert MASKED(data) == shown
    assert msgspec.json.decode(ReaderMask().json(data)) == shown


@given(PLAIN)
def test_data_without_secrets_is_the_same_object(data: Any) -> None:
    assert MASKED(data) is data
    assert ReaderMask().json(data) == msgspec.json.encode(data)


def test_fields_of_an_answer_are_names_of_noetl_and_a_named_value_is_not() -> None:
    made = TokenMade(
        token_id="t", role="admin", name="n", created_at=0, created_by="", expires_at=None, revoked_at=None, pool=None, namespaces=(),
        used_at=None, secret="s"
    )  # fmt: skip
    assert MASKED(made) is made
    assert MASKED(Variable(execution_id="1", name="api_key", value="k")).value == MASK
    assert MASKED(Variable(execution_id="1", name="colour", value="k")).value == "k"


def test_values_that_the_process_knows_are_masked_anywhere_also_in_keys() -> None:
    known = KnownValues()
    with in_process(known):
        known.learn("api", {"token": "hunter22"})
        assert MASKED({"a hunter22": ["hunter22!", 7]}) == {f"a {MASK}": [f"{MASK}!", 7]}
        assert ReaderMask().json([b"hunter22".hex()]) == f'["{MASK}"]'.encode()
    assert MASKED("hunter22") == "hunter22"


def test_a_command_that_fetches_a_secret_stays_readable() -> None:
    text = 'export NOETL_ENCRYPTION_KEY="$(noetl credential key)"'
    assert mask_text(text, lambda _name: True) == text
    assert mask_text('NOETL_ENCRYPTION_KEY="abcdefgh"', lambda _name: True) == f'NOETL_ENCRYPTION_KEY="{MASK}"'


class Answer(msgspec.Struct):
    """An answer with fields of NoETL, and data of a user in them."""

    key: str
    rows: list[dict[str, Any]]
    inner: list[Variable]


@pytest.mark.asyncio
@pytest.mark.parametrize("count", [1, 20_000])  # the second is masked in a thread
async def test_an_answer_of_any_size_is_masked_in_the_same_way(count: int) -> None:
    rows = [{"password": "x", "n": number} for number in range(count)]
    inner = [Variable("1", "password", "x"), Variable("1", "n", 1)]
    answer = Answer("row 7", rows, inner)
    mask = ReaderMask()
    assert await mask.answer(answer) == mask.json(answer)
    shown = msgspec.json.decode(await mask.answer(answer), type=Answer)
    assert (shown.key, shown.rows[-1]) == ("row 7", {"password": MASK, "n": count - 1})
    assert [one.value for one in shown.inner] == [MASK, 1]


@pytest.mark.asyncio
async def test_a_large_answer_is_what_it_was_when_it_was_asked_for() -> None:
    data = {"rows": [{"password": "x"}] * 10_000, "n": 1}
    asked = asyncio.create_task(ReaderMask().answer(data))
    await asyncio.sleep(0)
    data["n"] = 2
    data["rows"] = []
    assert msgspec.json.decode(await asked) == {"rows": [{"password": MASK}] * 10_000, "n": 1}


@pytest.mark.asyncio
async def test_a_large_answer_without_secrets_is_sent_as_it_is() -> None:
    data = {"rows": ["x" * 100] * 10_000}
    assert await ReaderMask().answer(data) == msgspec.json.encode(data)
