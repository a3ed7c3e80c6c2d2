"""One run of `noetl test`: finds the files of tests, reads their playbooks, plays what was chosen, and reports.

What is printed and written is `noetl.cli.output.test_report`. Tested in tests/acceptance/test_test_cli.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from noetl.cli.common.files import FileTrouble, read_playbook
from noetl.cli.common.store import complain
from noetl.cli.language.test_files import About, tests_in
from noetl.cli.output.test_report import FileResult, Outcome, print_json, print_text, write_junit
from noetl.model.errors import InvalidInput, NoetlError
from noetl.testing.cases.cassette import read_cassette
from noetl.testing.cases.coverage import Coverage
from noetl.testing.cases.matrix import run_saga
from noetl.testing.cases.playing import Stage
from noetl.testing.cases.read import SUFFIXES, Given, TestFile
from noetl.testing.cases.running import run_cases
from noetl.wiring import language_kinds


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    places: tuple[str, ...]
    saga: bool = False
    crash: bool = False
    keyword: str = ""
    cover: bool = False
    cover_min: float | None = None
    junit: Path | None = None
    json: bool = False

    def run(self) -> int:
        """Run once and report; gives the exit code."""
        return self.told(Session(self).run())

    def told(self, outcome: Outcome) -> int:
        """Report; gives the exit code."""
        (print_json if self.json else print_text)(outcome)
        if self.junit is not None:
            write_junit(outcome, self.junit)
        return outcome.exit_code


@dataclass
class Session:
    """One run over all files."""

    asked: Asked
    outcome: Outcome = field(init=False)
    watched: set[Path] = field(default_factory=set)  # files that this run has read

    def __post_init__(self) -> None:
        coverage = Coverage() if self.asked.cover else None
        self.outcome = Outcome(coverage=coverage, least=self.asked.cover_min, details=self.asked.saga)

    def run(self) -> Outcome:
        files = list(dict.fromkeys(self._files()))
        for file in files:
            self._run_file(file)
        if files and not self.outcome.troubles and not self.outcome.count():
            kept = f" whose name holds `{self.asked.keyword}`" if self.asked.keyword else ""
            what = "saga" if self.asked.saga else "test"
            self.outcome.troubles.append(f"there is no {what}{kept} in {', '.join(self.asked.places)}")
        return self.outcome

    def _files(self) -> Iterator[Path]:
        for place in self.asked.places:
            path = Path(place)
            if path.is_dir():
                found = sorted(file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}"))
                if not found:
                    self.outcome.troubles.append(f"{place}: no file of tests (*.test.yaml) below this folder")
                yield from found
            elif place.endswith(SUFFIXES) or not path.is_file():
                yield path
            else:
                beside = path.with_name(path.stem + ".test" + path.suffix)
                if beside.is_file():
                    yield beside
                else:
                    self.outcome.troubles.append(f"{place}: there is no {beside.name} beside this playbook")

    def _run_file(self, file: Path) -> None:
        self.watched.add(file)
        troubles: list[FileTrouble] = []
        text = read_playbook(str(file), troubles)
        if text is None:
            self.outcome.troubles.extend(trouble.message for trouble in troubles)
            return
        tests, about = tests_in(text, file)
        result = FileResult(tests.source, str(file.parent / tests.playbook))
        self.outcome.files.append(result)
        result.troubles.extend(tests.troubles)
        self.watched.update(about.files if about is not None else ())
        if about is None or tests.troubles:
            return
        stage = self._stage(about, tests)
        recording = _Recording(file.parent, tests, self.watched)
        if not self.asked.saga:
            result.cases.extend(run_cases(tests, stage, recording, self._is_chosen(file), self.outcome.coverage))
        if tests.saga is not None and self._is_chosen(file)("saga"):
            given, recorded = recording(tests.given)
            result.sagas.append(run_saga(tests, stage, given, recorded, self.outcome.coverage, crash=self.asked.crash))

    def _is_chosen(self, file: Path) -> Callable[[str], bool]:
        return lambda name: self.asked.keyword.lower() in f"{file} {name}".lower()

    def _stage(self, about: About, tests: TestFile) -> Stage:
        if self.outcome.coverage is not None:
            self.outcome.coverage.know(about.main.tree, str(about.file), about.main.content)
        stage = Stage(about.main, about.others, language_kinds())
        return _for_real(stage) if _runs_for_real(tests) else stage


@dataclass(frozen=True)
class _Recording:
    """Brings in the cassette that a case names."""

    folder: Path
    tests: TestFile
    watched: set[Path]

    def __call__(self, given: Given) -> tuple[Given, Mapping[str, Any]]:
        if given.cassette is None:
            return given, {}
        path = self.folder / given.cassette
        self.watched.add(path)
        troubles: list[FileTrouble] = []
        text = read_playbook(str(path), troubles)
        if text is None:
            raise InvalidInput(f"the cassette {troubles[0].message}")
        return read_cassette(text, str(path)).given(given)


def _runs_for_real(tests: TestFile) -> bool:
    everything = [tests.given, *(case.given for case in tests.cases)]
    return any(given.real or "real" in str(given.mocks) for given in everything)


def _for_real(stage: Stage) -> Stage:
    from noetl.cli.common.store import local_settings
    from noetl.testing.cases.really import real_tools, really_running

    settings = local_settings(None)
    return dataclasses.replace(stage, real=real_tools(), equipment=lambda: really_running(settings))


def watched(asked: Asked) -> int:
    """Run again whenever a file that was read changes, until Ctrl-C; gives the exit code of the last run."""
    from noetl.cli.common.file_watch import changes

    codes = [0]
    changes(lambda: _once(asked, codes))
    return codes[-1]


def _once(asked: Asked, codes: list[int]) -> Callable[[], set[Path]]:
    session = Session(asked)
    try:
        codes.append(asked.told(session.run()))
    except NoetlError as error:
        complain(error)
        codes.append(error.exit_code)
    folders = [Path(place) for place in asked.places if Path(place).is_dir()]

    def files() -> set[Path]:
        return session.watched | {file for folder in folders for end in SUFFIXES for file in folder.rglob(f"*{end}")}

    return files
