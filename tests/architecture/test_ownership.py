"""Check that modules write no foreign fields and read no private attributes.

What is left of both, and of crowded folders, is listed in known_violations.txt. The list only shrinks.
"""

from __future__ import annotations

import pytest

from tests.architecture.known_violations import current, known
from tests.architecture.ownership import RECORDS, Code
from tests.architecture.source import Module, modules

OWNER = """
class Inbox:
    entries: list[int]
    def __init__(self) -> None:
        self.dry = False
        self.waiting = {}
        self._hidden = 0
"""


def code(text: str) -> Code:
    return Code([
        Module("noetl.owner", "src/noetl/owner.py", OWNER),
        Module("noetl.other", "src/noetl/other.py", text),
    ])  # fmt: skip


def test_the_list_of_known_violations_is_exact() -> None:
    found = current()
    new = sorted(set(found) - set(known()))
    assert new == [], "new violations: mend the code"
    gone = sorted(set(known()) - set(found))
    assert gone == [], "no longer violated: run `python -m tests.architecture.known_violations`"


def test_the_list_is_sorted_and_has_nothing_twice() -> None:
    assert known() == sorted(set(known()))


def test_every_record_has_its_module_its_writers_and_its_reason() -> None:
    names = [module.name for module in modules()]
    for owner, (writers, reason) in RECORDS.items():
        assert owner in names
        assert reason
        assert [writer for writer in writers if not any(name.startswith(writer) for name in names)] == []


@pytest.mark.parametrize(
    ("body", "touched"),
    [
        ("inbox.dry = True", "Inbox.dry"),
        ("inbox.dry |= True", "Inbox.dry"),
        ("del inbox.dry", "Inbox.dry"),
        ("a, inbox.dry = 1, 2", "Inbox.dry"),
        ("for inbox.dry in []: pass", "Inbox.dry"),
        ("inbox.waiting[1] = 2", "Inbox.waiting"),
        ("del inbox.waiting[1]", "Inbox.waiting"),
        ("inbox.entries.append(1)", "Inbox.entries"),
        ("setattr(inbox, 'dry', True)", "Inbox.dry"),
        ("object.__setattr__(inbox, 'dry', True)", "Inbox.dry"),
        ("def g(): inbox.dry = True", "Inbox.dry"),
    ],
)
def test_a_foreign_write_is_seen(body: str, touched: str) -> None:
    for head in ("def f(inbox: Inbox):", "def f(inbox):", "async def f(inbox: 'Inbox | None'):"):
        assert [one.touched for one in code(f"{head}\n    {body}\n").foreign_writes()] == [touched], head


def test_a_write_through_a_field_is_seen() -> None:
    text = "class C:\n    def __init__(self, inbox: Inbox): self.box = inbox\n    def f(self): self.box.dry = True\n"
    assert [one.touched for one in code(text).foreign_writes()] == ["Inbox.dry"]


def test_a_write_to_an_inherited_field_is_seen() -> None:
    text = "class Sub(Inbox):\n    more: int\n"
    both = [*code("def f(sub: Sub):\n    sub.dry = True\n").modules, Module("noetl.sub", "src/noetl/sub.py", text)]
    assert [one.touched for one in Code(both).foreign_writes()] == ["Inbox.dry"]


@pytest.mark.parametrize(
    "text",
    [
        "def f(other: Message):\n    other.dry = True\n",  # a class of a library
        "def f():\n    inbox = Inbox()\n    inbox.dry = True\n",
        "class C:\n    dry: bool\n    def f(self): self.dry = True\n",
        "class C:\n    dry: bool\ndef f(c: C): c.dry = True\n",
        "def f(inbox: Inbox):\n    return inbox.dry, inbox.entries.index(1)\n",
        "def f(inbox: Inbox):\n    inbox.dry.update(1)\n",  # no container: its own method
        "import sys\nsys.waiting.update({})\n",
    ],
)
def test_what_is_no_foreign_write_is_left_alone(text: str) -> None:
    assert list(code(text).foreign_writes()) == []


@pytest.mark.parametrize(
    ("text", "touched"),
    [
        ("x._hidden", "x._hidden"),
        ("x.y._hidden = 1", "x.y._hidden"),
        ("getattr(x, '_hidden')", "x._hidden"),
        ("from noetl.owner import _helper", "noetl.owner._helper"),
    ],
)
def test_a_private_read_is_seen(text: str, touched: str) -> None:
    assert [one.touched for one in code(text).private_reads()] == [touched]


@pytest.mark.parametrize(
    "text",
    [
        "self._hidden",
        "super()._hidden",
        "x.__name__",
        "x._replace(a=1)",
        "import os\nos._exit(1)",
        "class C:\n    def __init__(self): self._hidden = 1\n    def same(self, other: C): return other._hidden\n",
    ],
)
def test_what_is_no_private_read_is_left_alone(text: str) -> None:
    assert list(code(text).private_reads()) == []
