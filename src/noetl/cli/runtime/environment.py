"""Variables of a command: the process environment over the configuration file.

Loads the language only if it is needed. Tested in tests/acceptance/admin/test_configuration_cli.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noetl.settings import CONFIG, SECTIONS, config_file


def environment() -> Mapping[str, str]:
    """Return the variables of this process. Raises InvalidInput for a bad file."""
    folder = Path.cwd()
    if not os.environ.get(CONFIG, "").strip() and not config_file(os.environ, folder).exists():
        return os.environ
    from noetl.configuration import configured

    return configured(os.environ, folder)


def layer_of(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the configured defaults of executions. Raises InvalidInput."""
    if not any(name.startswith(SECTIONS) for name in variables):
        return {}
    from noetl.configuration import layer

    return layer(variables)
