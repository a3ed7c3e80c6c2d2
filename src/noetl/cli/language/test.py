"""`noetl test`: plays the cases of `*.test.yaml` files in pretended time and tells what is not as they expect.

Exit code 0: all passed; 1: some failed, or too little was covered; 2: a file cannot be used, or there is nothing to test.
The plays are `noetl.testing.cases`. Tested in tests/acceptance/test_test_cli.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.common.store import AsJson, complain
from noetl.model.errors import NoetlError


def command(
    places: Annotated[
        list[str],
        typer.Argument(metavar="DIR|FILE…", help="Files of tests, playbooks with tests beside them, or folders."),
    ],
    saga: Annotated[
        bool, typer.Option("--saga", help="Only try the sagas: every call fails in turn, then every compensation too.")
    ] = False,
    crash: Annotated[
        bool,
        typer.Option("--crash", help="With sagas: the process also dies before every commit, and another goes on."),
    ] = False,
    keyword: Annotated[
        str, typer.Option("-k", metavar="TEXT", help="Only cases whose file and name hold this text.")
    ] = "",
    cover: Annotated[bool, typer.Option("--cover", help="Tell which arcs and rules no case went through.")] = False,
    cover_min: Annotated[
        float | None,
        typer.Option("--cover-min", metavar="PERCENT", min=0, max=100, help="Fail where less is covered than this."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write a report that CI systems read.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Run again whenever a file changes, until Ctrl-C.")] = False,
    json: AsJson = False,
) -> None:
    """Play the tests of playbooks, in pretended time."""
    from noetl.cli.language.test_session import Asked, watched

    asked = Asked(tuple(places), saga, crash, keyword, cover or cover_min is not None, cover_min, junit, json)
    try:
        code = watched(asked) if watch else asked.run()
    except NoetlError as error:
        complain(error)
        code = error.exit_code
    raise typer.Exit(code)
