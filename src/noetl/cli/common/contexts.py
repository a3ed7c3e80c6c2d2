"""The servers that this person's commands know by name: a file of theirs that only they can read.

Holds addresses and tokens, and which one is in use. Tested in tests/acceptance/test_context_cli.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noetl.model.errors import InvalidInput

_Known = dict[str, dict[str, str]]


def place() -> Path:
    """Give the file: in the user's folder for settings."""
    home = os.environ.get("XDG_CONFIG_HOME", "").strip()
    return (Path(home) if home else Path.home() / ".config") / "noetl" / "contexts.json"


def known() -> tuple[_Known, str]:
    """Give the contexts by name, and the name of the one in use; an empty one where it is this machine."""
    try:
        data = json.loads(place().read_text(encoding="utf-8"))
        contexts = {str(name): dict(one) for name, one in data["contexts"].items()}
        return contexts, str(data.get("current") or "")
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"the contexts in {place()} cannot be read: {error}. Mend the file, or delete it.") from None


def keep(contexts: Mapping[str, Mapping[str, str]], current: str) -> None:
    """Write the file anew; nobody else may read it."""
    file = place()
    data: dict[str, Any] = {"current": current, "contexts": contexts}
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = file.with_name(f"{file.name}.{os.getpid()}")
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
            json.dump(data, opened, indent=2)
        beside.replace(file)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}.") from None
