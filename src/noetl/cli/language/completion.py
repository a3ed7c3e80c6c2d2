"""`noetl completion`: print the completion script of a shell.

The completers are in `noetl.cli.arguments.completers`. Tested in tests/acceptance/language/test_completion_cli.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.arguments.completers import one_of
from noetl.cli.runtime.runner import fail
from noetl.model.errors import InvalidInput

_SHELLS = ("bash", "zsh", "fish")


def command(
    ctx: typer.Context,
    shell: Annotated[
        str, typer.Argument(metavar="bash|zsh|fish", help="Shell to complete in.", autocompletion=one_of(*_SHELLS))
    ],
) -> None:
    """Print the completion script of a shell.

    Add `eval "$(noetl completion bash)"` to its start file.
    """
    from typer.completion import show_callback

    if shell not in _SHELLS:
        fail(InvalidInput(f"No completion for `{shell}`. Use one of: {', '.join(_SHELLS)}."))
    show_callback(ctx, ctx.command.params[0], shell)
