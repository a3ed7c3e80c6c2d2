"""Mutated templates compile and evaluate, or fail as templates with an offset."""

from __future__ import annotations

import random

import pytest

from noetl.expr import Budget, Template, TemplateError, TemplateSyntaxError
from tests.unit.expr import corpus
from tests.unit.expr.plain import is_plain
from tests.unit.expr.safety.escapes import ESCAPES

SOURCES = [*corpus.same(), *corpus.different(), *ESCAPES]
SIGNS = "{}%#()[]'\"|.,:=+-*/~<>!&? \n\\_azAZ09é"


def mutant(chance: random.Random) -> str:
    """Drop, double, replace or insert a few characters of a template."""
    source = chance.choice(SOURCES)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(source) + 1)
        match chance.randrange(5):
            case 0:
                source = source[:place] + source[place + 1 :]
            case 1:
                source = source[:place] + chance.choice(SIGNS) + source[place:]
            case 2:
                source = source[:place] + chance.choice(SIGNS) + source[place + 1 :]
            case 3:
                other = chance.choice(SOURCES)
                source = source[:place] + other[chance.randrange(len(other)) :]
            case _:
                end = min(len(source), place + chance.randint(1, 8))
                source = source[:end] + source[place:end] + source[end:]
    return source


def check(source: str) -> None:
    try:
        template = Template(source)
    except TemplateSyntaxError as error:
        place = -1 if error.offset is None else error.offset
        if not (error.message and 0 <= place <= len(source)):
            raise AssertionError(f"no place or no message for {source!r}") from error
        return
    for read in template.reads:
        assert source[read.offset :].startswith(str(read.path[0])), source
    try:
        value = template.evaluate(corpus.data(), budget=Budget(20_000, 200_000))
    except TemplateError:
        return
    assert is_plain(value), source


@pytest.mark.parametrize("seed", range(10))
def test_mutants(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        check(mutant(chance))


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_mutants(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(1_000):
        check(mutant(chance))
