"""The environment of a command: the variables of the process, and below them what its configuration file says.

Loads nothing of the language where there is neither a file nor a setting for executions. Tested in
tests/acceptance/test_configuration_cli.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noetl.settings import CONFIG, SECTIONS, config_file


def environment() -> Mapping[str, str]:
    """Give the variables of this process. Raises InvalidInput for a configuration file that cannot be used."""
    folder = Path.cwd()
    if not os.environ.get(CONFIG, "").strip() and not config_file(os.environ, folder).exists():
        return os.environ
    from noetl.configuration import configured

    return configured(os.environ, folder)


def layer_of(variables: Mapping[str, str]) -> dict[str, Any]:
    """Give what executions have where their playbooks say nothing. Raises InvalidInput."""
    if not any(name.startswith(SECTIONS) for name in variables):
        return {}
    from noetl.configuration import layer

    return layer(variables)
