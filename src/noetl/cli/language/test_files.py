"""Reads a file of tests together with the playbook that it is about: everything that is wrong with it, before it is played.

`noetl test` plays what comes of it, the language server shows what is wrong. Tested in tests/acceptance/test_test_cli.py and
test_lsp.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from noetl.cli.playbooks.prepare import Prepared, Preparing
from noetl.model.errors import InvalidInput, InvalidPlaybook
from noetl.testing.cases.names import Names, name_troubles
from noetl.testing.cases.read import TestFile, read_tests
from noetl.testing.cases.trouble import at
from noetl.wiring import language_kinds


@dataclass(frozen=True)
class About:
    """The playbook that a file of tests is about, those it calls, and every file that was read for it."""

    file: Path
    main: Prepared
    others: list[Prepared]
    files: set[Path]


def tests_in(text: bytes | str, file: Path) -> tuple[TestFile, About | None]:
    """Read a file of tests; what is wrong is in its troubles, and then there may be nothing to play."""
    tests = read_tests(text, str(file), file.name)
    return tests, None if tests.troubles else _about(tests, file)


def _about(tests: TestFile, file: Path) -> About | None:
    here = Path.cwd()
    preparing = Preparing(here if file.resolve().is_relative_to(here) else file.resolve().parent)
    named = file.parent / tests.playbook
    place = tests.root.get("playbook") or tests.root
    if not named.is_file():
        said = f"`{named}`" if "playbook" in tests.root else f"`{named.name}` beside this file"
        tests.troubles.append(at(tests.source, place, f"There is no playbook {said}.", "Write `playbook: FILE`."))
        return None
    try:
        main = preparing.read(str(named), quiet=True)
    except InvalidPlaybook:
        said = f"The playbook {named} has errors; `noetl validate {named}` lists them."
        tests.troubles.append(at(tests.source, place, said))
        return None
    except InvalidInput as error:
        tests.troubles.append(at(tests.source, place, str(error)))
        return None
    others = [one for one in preparing.found.values() if one is not None and one is not main]
    trees = [main.tree, *(one.tree for one in others)]
    tests.troubles.extend(name_troubles(tests, Names(main.tree, trees, language_kinds())))
    return About(named, main, others, set(preparing.found))
