"""The command line: one file per command, imported only when it is called."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that the arguments name."""
    from noetl.cli.app import run

    run(sys.argv[1:])


__all__ = ["main"]
