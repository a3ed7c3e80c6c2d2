"""The whole corpus: good playbooks are silent, broken ones give what they expect."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl.dsl.diagnostic import SEVERITIES
from noetl.dsl.validate import validate
from noetl.wiring.embedded import language_kinds
from tests.corpus.corpus import expected, files, name

KINDS = language_kinds()
CATALOG = ("examples/hello", "children/known")


@pytest.mark.parametrize("path", files("good"), ids=name)
def test_a_good_playbook_is_silent(path: Path) -> None:
    assert validate(path.read_bytes(), name(path), KINDS, catalog=CATALOG) == ()


@pytest.mark.parametrize("path", files("broken"), ids=name)
def test_a_broken_playbook_gives_what_it_expects(path: Path) -> None:
    found = validate(path.read_bytes(), name(path), KINDS, catalog=CATALOG)
    wanted = expected(path)
    assert wanted, "a broken playbook says what it expects"
    assert sorted((d.code, d.line, d.column) for d in found) == sorted(wanted), [d.message for d in found]
    for diagnostic in found:
        assert diagnostic.severity in SEVERITIES
        assert diagnostic.message.strip()
        assert diagnostic.fix.strip()


def test_the_corpus_is_large_enough_and_every_file_is_its_own() -> None:
    good, broken = files("good"), files("broken")
    assert len(good) >= 60
    assert len(broken) >= 120
    bodies = [_without_comments(path) for path in (*good, *broken)]
    assert len(set(bodies)) == len(bodies), "two files of the corpus are the same playbook"


def _without_comments(path: Path) -> bytes:
    return b"\n".join(line for line in path.read_bytes().splitlines() if not line.lstrip().startswith(b"#"))
