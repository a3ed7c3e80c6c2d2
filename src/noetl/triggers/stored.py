"""Read specifications of triggers that the store holds.

Another version may have written them. Tested in tests/unit/triggers/test_stored.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from noetl.model.errors import InvalidInput

Spec = TypeVar("Spec", bound=msgspec.Struct)


def read_spec(stored: Mapping[str, Any], spec: type[Spec]) -> Spec:
    """Return what a stored trigger holds. Raises InvalidInput."""
    try:
        return msgspec.convert(stored, spec)
    except msgspec.ValidationError as error:
        fix = "Register its playbook again with a value of the right type, or delete it and create it anew."
        raise InvalidInput(f"What is stored cannot be read: {error}. {fix}") from None
