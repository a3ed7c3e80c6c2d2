"""Run a command's coroutine: event loop, logging, errors as exit codes.

Exit codes: 0 completed, 1 failed, 2 invalid input, 3 cancelled, 4 waiting, 5 partial. Tested in
tests/acceptance/executions/test_run.py.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import typer

from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidPayload, InvalidSetting, NoetlError

if TYPE_CHECKING:
    from collections.abc import Mapping

EXIT_CODES: Final[Mapping[str, int]] = {"completed": 0, "failed": 1, "cancelled": 3, "partial": 5}
WAITING: Final = 4  # any other status
_LONG_RUNNING: Final = 20_000  # allocations between two collections, in a process that runs for long
SHORT_LIVED: Final = 100_000  # in a process that keeps nearly everything until it prints its report
_OLDER_GENERATIONS: Final = (20, 50)
T = TypeVar("T")


def call(job: Callable[[], Awaitable[T]], *, fast: bool = False, service: bool = False) -> T:
    """Run a coroutine function; print a NoetlError on one line, exit with its code.

    `fast` uses uvloop, which takes longer to load than a short command can save. A `service` runs until it is stopped,
    checks every setting first, and logs with time and level.
    """
    import asyncio

    async def run_job() -> T:
        return await job()

    try:
        if service:
            _refuse_wrong_settings()
        _configure_logging(service)
        warn_of_unknown_variables()
        with asyncio.Runner(loop_factory=fast_loop() if fast else None) as runner:
            return runner.run(run_job())
    except NoetlError as error:
        fail(error)


def fail(error: NoetlError) -> NoReturn:
    """Print an error and exit with its code."""
    print_error(error)
    raise typer.Exit(error.exit_code) from None


def print_error(error: NoetlError) -> None:
    """Print an error on stderr; of settings, everything that is wrong with them."""
    lines = _setting_lines(error) if isinstance(error, InvalidSetting) else [str(error)]
    for line in lines:
        echo(f"noetl: {line}", err=True)
    if isinstance(error, InvalidPayload):
        echo("Pass values with --set KEY=VALUE or --payload JSON, or correct their defaults in `workload`.", err=True)


def _setting_lines(error: InvalidSetting) -> list[str]:
    from noetl.cli.runtime.environment import setting_problems

    found = setting_problems()
    own = str(error).splitlines()
    return found if any(line.endswith(own[0]) for line in found) else [*own, *found]


def _refuse_wrong_settings() -> None:
    """Exit if any setting is wrong, also one that is read later or by another part."""
    from noetl.cli.runtime.environment import setting_problems

    found = setting_problems()
    for line in found:
        echo(f"noetl: {line}", err=True)
    if found:
        raise typer.Exit(InvalidSetting.exit_code)


def _configure_logging(service: bool) -> None:
    """Log to stderr as the settings say. Raises InvalidInput."""
    from noetl.cli.runtime.environment import environment, reader_mask
    from noetl.cli.runtime.terminal import escaped
    from noetl.observe.logs.lines import ConsoleLines, JsonLines, configure
    from noetl.settings import logging_settings

    given, form = logging_settings(environment())
    # Libraries log addresses with their query, headers and statements at INFO and DEBUG, so only their warnings are
    # shown; and these are noise for a user who runs a playbook: a task's outcome has the error.
    libraries = "WARNING" if given in ("DEBUG", "INFO") else given or "ERROR"
    lines = JsonLines(reader_mask, escaped) if form == "json" else ConsoleLines(reader_mask, escaped, service=service)
    configure(lines, given or ("INFO" if service else "ERROR"), libraries, given or ("WARNING" if service else "ERROR"))


def warn_of_unknown_variables() -> None:
    """Print a warning for each variable that begins with NOETL_ and is no setting."""
    from noetl.cli.runtime.environment import unknown_variables

    for name, hint in unknown_variables():
        echo(f"noetl: warning: the environment variable {name} is no setting.{hint}", err=True)


def fast_loop() -> Callable[[], Any] | None:
    """Return uvloop's loop factory, or None where uvloop is not installed."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


def tune_gc(allocations: int = _LONG_RUNNING) -> None:
    """Collect garbage less often, and never scan the objects that exist now."""
    gc.freeze()
    gc.set_threshold(allocations, *_OLDER_GENERATIONS)
