"""One `noetl test` run. Tested in tests/acceptance/language/test_test_cli.py."""

from __future__ import annotations

import dataclasses
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from noetl.cli.arguments.files import FileProblem, load_file, read_file
from noetl.cli.language.test_files import TestedPlaybook, load_tests
from noetl.cli.output.test_report import FileResult, Outcome, print_json, print_text, write_junit
from noetl.cli.runtime.runner import print_error
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput, NoetlError
from noetl.testing.cases.cassettes.cassette import read_cassette
from noetl.testing.cases.checks.coverage import Coverage
from noetl.testing.cases.files.read import SUFFIXES, Given, TestFile
from noetl.testing.cases.player.player import Stage
from noetl.testing.cases.runner import run_cases
from noetl.testing.cases.saga_matrix import run_saga
from noetl.wiring.embedded import language_kinds

_WATCH_POLL_S: Final = 0.3


@dataclass(frozen=True)
class TestOptions:
    """Options of the command line."""

    places: tuple[str, ...]
    saga: bool = False
    crash: bool = False
    keyword: str = ""
    cover: bool = False
    cover_min: float | None = None
    junit: Path | None = None
    json: bool = False

    def run(self) -> int:
        """Run once and report; return the exit code."""
        return self.report(TestSession(self).run())

    def report(self, outcome: Outcome) -> int:
        """Report; return the exit code."""
        (print_json if self.json else print_text)(outcome)
        if self.junit is not None:
            write_junit(outcome, self.junit)
        return outcome.exit_code


@dataclass
class TestSession:
    """One run over all files."""

    options: TestOptions
    outcome: Outcome = field(init=False)
    watched: set[Path] = field(default_factory=set)  # files read by this run

    def __post_init__(self) -> None:
        coverage = Coverage() if self.options.cover else None
        self.outcome = Outcome(coverage=coverage, least=self.options.cover_min, details=self.options.saga)

    def run(self) -> Outcome:
        files = list(dict.fromkeys(self._files()))
        for file in files:
            self._run_file(file)
        if files and not self.outcome.troubles and not self.outcome.count():
            matching = f" matching `{self.options.keyword}`" if self.options.keyword else ""
            what = "saga" if self.options.saga else "test"
            self.outcome.troubles.append(f"no {what}s{matching} in {', '.join(self.options.places)}")
        return self.outcome

    def _files(self) -> Iterator[Path]:
        for place in self.options.places:
            path = Path(place)
            if path.is_dir():
                found = sorted(file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}"))
                if not found:
                    self.outcome.troubles.append(f"{place}: no test files (*.test.yaml) in this folder")
                yield from found
            elif place.endswith(SUFFIXES) or not path.is_file():
                yield path
            else:
                beside = path.with_name(path.stem + ".test" + path.suffix)
                if beside.is_file():
                    yield beside
                else:
                    self.outcome.troubles.append(f"{place}: no {beside.name} beside this playbook")

    def _run_file(self, file: Path) -> None:
        self.watched.add(file)
        problems: list[FileProblem] = []
        text = read_file(str(file), problems)
        if text is None:
            self.outcome.troubles.extend(problem.message for problem in problems)
            return
        tests, tested = load_tests(text, file)
        result = FileResult(tests.source, str(file.parent / tests.playbook))
        self.outcome.files.append(result)
        result.troubles.extend(tests.troubles)
        self.watched.update(tested.files if tested is not None else ())
        if tested is None or tests.troubles:
            return
        stage = self._stage(tested, tests)
        load_cassette = _CassetteLoader(file.parent, self.watched)
        if not self.options.saga:
            result.cases.extend(run_cases(tests, stage, load_cassette, self._is_selected(file), self.outcome.coverage))
        if tests.saga is not None and self._is_selected(file)("saga"):
            given, recorded = load_cassette(tests.given)
            result.sagas.append(
                run_saga(tests, stage, given, recorded, self.outcome.coverage, crash=self.options.crash)
            )

    def _is_selected(self, file: Path) -> Callable[[str], bool]:
        return lambda name: self.options.keyword.lower() in f"{file} {name}".lower()

    def _stage(self, tested: TestedPlaybook, tests: TestFile) -> Stage:
        if self.outcome.coverage is not None:
            self.outcome.coverage.know(tested.main.tree, str(tested.file), tested.main.content)
        stage = Stage(tested.main, tested.others, language_kinds())
        return _with_real_tools(stage) if _needs_real_tools(tests) else stage


@dataclass(frozen=True)
class _CassetteLoader:
    folder: Path
    watched: set[Path]

    def __call__(self, given: Given) -> tuple[Given, Mapping[str, Any]]:
        if given.cassette is None:
            return given, {}
        path = self.folder / given.cassette
        self.watched.add(path)
        try:
            text = load_file(str(path))
        except InvalidInput as error:
            raise InvalidInput(f"Cannot read the cassette: {error}") from None
        return read_cassette(text, str(path)).given(given)


def _needs_real_tools(tests: TestFile) -> bool:
    everything = [tests.given, *(case.given for case in tests.cases)]
    return any(given.real or "real" in str(given.mocks) for given in everything)


def _with_real_tools(stage: Stage) -> Stage:
    from noetl.cli.runtime.store import local_settings
    from noetl.testing.cases.player.real_tools import real_tools, really_running

    settings = local_settings(None)
    return dataclasses.replace(stage, real=real_tools(), equipment=lambda: really_running(settings))


def run_and_watch(options: TestOptions) -> int:
    """Run again on every change until Ctrl-C; return the last exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # even if the parent process ignores SIGINT
    code = 0
    try:
        while True:
            session = TestSession(options)
            try:
                code = options.report(session.run())
            except NoetlError as error:
                print_error(error)
                code = error.exit_code
            sys.stdout.flush()
            seen = _modified_times(_watched_files(session))
            echo(f"noetl: watching {len(seen)} files; press Ctrl-C to stop.", err=True)
            while _modified_times(_watched_files(session)) == seen:
                time.sleep(_WATCH_POLL_S)
    except KeyboardInterrupt:
        echo("", err=True)
    return code


def _watched_files(session: TestSession) -> set[Path]:
    folders = [Path(place) for place in session.options.places if Path(place).is_dir()]
    return session.watched | {file for folder in folders for end in SUFFIXES for file in folder.rglob(f"*{end}")}


def _modified_times(files: Iterable[Path]) -> dict[Path, int]:
    times = {}
    for file in files:
        try:
            times[file] = file.stat().st_mtime_ns
        except OSError:  # being replaced, or deleted
            times[file] = 0
    return times
