"""Read a test file with its playbook and report every problem before a case runs.

Shared by `noetl test` and the language server. Tested in tests/acceptance/language/test_test_cli.py and test_lsp.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from noetl.cli.playbooks.prepare import Prepared, Preparer
from noetl.model.errors import InvalidInput, InvalidPlaybook
from noetl.testing.cases.files.names import Names, name_troubles
from noetl.testing.cases.files.problems import at
from noetl.testing.cases.files.read import TestFile, read_tests
from noetl.wiring.embedded import language_kinds


@dataclass(frozen=True)
class TestedPlaybook:
    """Playbook under test, those it calls, and every file read for it."""

    file: Path
    main: Prepared
    others: list[Prepared]
    files: set[Path]


def load_tests(text: bytes | str, file: Path) -> tuple[TestFile, TestedPlaybook | None]:
    """Read a test file, with its `troubles`; the playbook is None if unusable."""
    tests = read_tests(text, str(file), file.name)
    return tests, None if tests.troubles else _load_playbook(tests, file)


def _load_playbook(tests: TestFile, file: Path) -> TestedPlaybook | None:
    here = Path.cwd()
    preparer = Preparer(here if file.resolve().is_relative_to(here) else file.resolve().parent)
    named = file.parent / tests.playbook
    place = tests.root.get("playbook") or tests.root
    if not named.is_file():
        said = f"`{named}`" if "playbook" in tests.root else f"`{named.name}` beside this file"
        tests.troubles.append(at(tests.source, place, f"No playbook {said}.", "Write `playbook: FILE`."))
        return None
    try:
        main = preparer.prepare(str(named), quiet=True)
    except InvalidPlaybook:
        said = f"The playbook {named} has errors; `noetl validate {named}` lists them."
        tests.troubles.append(at(tests.source, place, said))
        return None
    except InvalidInput as error:
        tests.troubles.append(at(tests.source, place, str(error)))
        return None
    others = [one for one in preparer.found.values() if one is not None and one is not main]
    trees = [main.tree, *(one.tree for one in others)]
    tests.troubles.extend(name_troubles(tests, Names(main.tree, trees, language_kinds())))
    return TestedPlaybook(named, main, others, set(preparer.found))
