"""JSON is masked by name in any pieces, and keeps its length."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.secret_names import HiddenNames
from noetl.masking.json_stream import JsonStreamMask
from noetl.masking.readers import ReaderMask

NAMES = HiddenNames()
KEYS = st.sampled_from(["password", "db_password", "rows", "key", "token_count", "api_key", ":", 'a"b', "n"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
DATA = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20)


def fed(text: bytes, size: int, mask: JsonStreamMask) -> bytes:
    pieces = [mask.feed(text[at : at + size]) for at in range(0, len(text), size)]
    return b"".join((*pieces, mask.end()))


def compare(before: Any, after: Any, name: str = "") -> None:
    """Everything is as before, except texts and numbers under the name of a secret."""
    if isinstance(before, dict):
        assert before.keys() == after.keys()
        for key, value in before.items():
            compare(value, after[key], key)
    elif isinstance(before, list):
        for one, other in zip(before, after, strict=True):
            compare(one, other)
    elif name and NAMES.hides(name) and isinstance(before, str):
        assert set(after) <= {"*"}
    elif name and NAMES.hides(name) and isinstance(before, int | float) and not isinstance(before, bool):
        assert after == 0
    else:
        assert before == after


@given(DATA, st.integers(1, 40), st.booleans())
def test_only_values_under_the_name_of_a_secret_change_and_no_length(data: Any, size: int, is_ascii: bool) -> None:
    text = json.dumps(data, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    made = fed(text, size, JsonStreamMask(NAMES.hides))
    assert len(made) == len(text)
    assert made == fed(text, 1 << 20, JsonStreamMask(NAMES.hides))
    compare(json.loads(text.decode("utf-8", "surrogatepass")), json.loads(made.decode("utf-8", "surrogatepass")))


def test_further_names_are_masked_too() -> None:
    text = b'{"iban": "DE02", "customer-iban" :12, "password": "x\\"y", "n": "(secret)"}'
    assert fed(text, 3, ReaderMask(["iban"]).stream()) == (
        b'{"iban": "****", "customer-iban" :0 , "password": "****", "n": "(secret)"}'
    )
