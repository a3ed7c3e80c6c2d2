"""`noetl completion`: prints what a shell runs to complete commands, options, executions, steps and playbooks.

What is completed is in `completing`. Tested in tests/acceptance/test_completion_cli.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.common.completers import among
from noetl.model.errors import InvalidInput

_SHELLS = ("bash", "zsh", "fish")


def command(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell.", autocompletion=among(*_SHELLS))],
) -> None:
    """Print the completion of a shell; `eval "$(noetl completion bash)"` in its start file turns it on."""
    from typer._completion_shared import get_completion_script

    from noetl.cli.app import COMPLETES
    from noetl.cli.common.store import complain

    if shell not in _SHELLS:
        problem = InvalidInput(f"`{shell}` is no shell that can be told how to complete: {', '.join(_SHELLS)}.")
        complain(problem)
        raise typer.Exit(problem.exit_code)
    typer.echo(get_completion_script(prog_name="noetl", complete_var=COMPLETES, shell=shell))
