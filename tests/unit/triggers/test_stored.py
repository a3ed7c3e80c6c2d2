"""What is stored of a trigger is read, or refused with the place and what to do."""

from __future__ import annotations

import pytest

from noetl.model.errors import InvalidInput
from noetl.triggers.ended import EndedSpec
from noetl.triggers.stored import read_spec


def test_a_stored_specification_is_read() -> None:
    assert read_spec({"path": "a/*", "tags": ["x"]}, EndedSpec) == EndedSpec("a/*", tags=("x",))


def test_one_that_cannot_be_read_names_the_place_and_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"cannot be read: .*got `int` - at `\$\.tags\[0\]`\. Register its playbook"):
        read_spec({"path": "a/*", "tags": [5]}, EndedSpec)
