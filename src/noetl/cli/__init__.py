"""Command line: each command is imported only when it is called."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process."""
    from noetl.cli.app import run
    from noetl.environ import take_secrets

    take_secrets()
    run(sys.argv[1:])


__all__ = ["main"]
