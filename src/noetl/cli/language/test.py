"""`noetl test`: run the cases of `*.test.yaml` files in simulated time.

Exit code 0: all passed; 1: some failed, or coverage is too low; 2: a file is invalid, or there are no tests. The cases run in
`noetl.testing.cases`. Tested in tests/acceptance/language/test_test_cli.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.arguments.options import AsJson
from noetl.cli.runtime.runner import print_error
from noetl.model.errors import NoetlError


def command(
    places: Annotated[
        list[str],
        typer.Argument(metavar="DIR|FILE…", help="Test files, playbooks with a test file beside them, or folders."),
    ],
    saga: Annotated[
        bool, typer.Option("--saga", help="Run only the sagas: each call fails in turn, then each compensation.")
    ] = False,
    crash: Annotated[
        bool,
        typer.Option("--crash", help="With sagas: also crash before every commit, and resume."),
    ] = False,
    keyword: Annotated[
        str, typer.Option("-k", metavar="TEXT", help="Only cases whose file or name contains this text.")
    ] = "",
    cover: Annotated[bool, typer.Option("--cover", help="List the arcs and rules that no case took.")] = False,
    cover_min: Annotated[
        float | None,
        typer.Option("--cover-min", metavar="PERCENT", min=0, max=100, help="Fail if coverage is below this."),
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write a JUnit XML report.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Run again when a file changes, until Ctrl-C.")] = False,
    json: AsJson = False,
) -> None:
    """Run the tests of playbooks in simulated time."""
    from noetl.cli.language.test_session import TestOptions, run_and_watch

    options = TestOptions(tuple(places), saga, crash, keyword, cover or cover_min is not None, cover_min, junit, json)
    try:
        code = run_and_watch(options) if watch else options.run()
    except NoetlError as error:
        print_error(error)
        code = error.exit_code
    raise typer.Exit(code)
