"""`clictl`: alias of `noetl` that also accepts the older forms of two commands.

    clictl exec start PATH …        noetl exec PATH …
    clictl exec status --id ID      noetl status ID

Tested in tests/acceptance/test_clictl.py.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process."""
    from noetl.cli.app import run
    from noetl.environ import take_secrets

    take_secrets()
    run(modern(sys.argv[1:]))


def modern(arguments: list[str]) -> list[str]:
    """Return the arguments in the form that `noetl` takes."""
    verb, rest = arguments[:2], arguments[2:]
    if verb == ["exec", "start"]:
        return ["exec", *rest]
    if verb == ["exec", "status"]:
        return ["status", *[word.removeprefix("--id=") for word in rest if word != "--id"]]
    return arguments


if __name__ == "__main__":
    main()
