"""Flame graphs: parse the profiler's output, compute shares, draw small XML."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from bench.flame import functions, part, picture, shares, stacks

RAW = """\
main (noetl/cli/app.py:78);run (asyncio/runners.py:86);_turn (noetl/server/sequencer/sequencer.py:180);append (noetl/stores/sqlite/store.py:5) 30
main (noetl/cli/app.py:78);run (asyncio/runners.py:86);_turn (noetl/server/sequencer/sequencer.py:180);dumps (json/__init__.py:9) 60
main (noetl/cli/app.py:78);run (asyncio/runners.py:86) 10
"""


def test_stacks_begin_where_they_differ() -> None:
    assert stacks(RAW) == Counter(
        {
            ("_turn (noetl/server/sequencer/sequencer.py)", "append (noetl/stores/sqlite/store.py)"): 30,
            ("_turn (noetl/server/sequencer/sequencer.py)", "dumps (json/__init__.py)"): 60,
            ("main (noetl/cli/app.py)", "run (asyncio/runners.py)"): 10,
        }
    )


def test_time_in_a_library_without_a_part_belongs_to_its_caller() -> None:
    assert shares(stacks(RAW)) == {"noetl.server": 0.6, "noetl.stores": 0.3, "event loop": 0.1}


def test_the_functions_that_take_most_are_told() -> None:
    assert functions(stacks(RAW)) == {
        "_turn (noetl/server/sequencer/sequencer.py)": 0.6,
        "append (noetl/stores/sqlite/store.py)": 0.3,
        "main (noetl/cli/app.py)": 0.1,
    }


def test_parts() -> None:
    assert part("f (noetl/engine/handlers/decide.py)") == "noetl.engine"
    assert part("f (noetl/settings.py)") == "noetl.settings"
    assert part("f (asyncpg/protocol/protocol.pyx)") == "database driver"
    assert part("f (<frozen importlib._bootstrap>)") == "other"


def test_a_picture_is_a_document_with_a_box_for_each_function() -> None:
    root = ElementTree.fromstring(picture(stacks(RAW), "w1 <server>"))
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "append (noetl/stores/sqlite/store.py): 30.0%" in titles
    assert len(titles) == 5
