"""Contexts file: named servers with their tokens, and the one in use.

Only its owner can read it. Tested in tests/acceptance/servers/test_context_cli.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noetl.model.errors import InvalidInput
from noetl.private_files import write_private

_Contexts = dict[str, dict[str, str]]


def contexts_file() -> Path:
    """Return the path of the file, in the user's configuration folder."""
    home = os.environ.get("XDG_CONFIG_HOME", "").strip()
    return (Path(home) if home else Path.home() / ".config") / "noetl" / "contexts.json"


def load_contexts() -> tuple[_Contexts, str]:
    """Return the contexts by name, and the one in use, `""` for this machine."""
    try:
        data = json.loads(contexts_file().read_text(encoding="utf-8"))
        contexts = {str(name): dict(one) for name, one in data["contexts"].items()}
        return contexts, str(data.get("current") or "")
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"Cannot read the contexts in {contexts_file()}: {error}. Fix or delete the file.") from None


def save_contexts(contexts: Mapping[str, Mapping[str, str]], current: str) -> None:
    """Replace the file atomically, readable by its owner only."""
    file = contexts_file()
    data: dict[str, Any] = {"current": current, "contexts": contexts}
    try:
        write_private(file, json.dumps(data, indent=2))
    except OSError as error:
        raise InvalidInput(f"Cannot write {file}: {error.strerror}. Check its permissions.") from None
