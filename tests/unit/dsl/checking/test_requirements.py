"""Tests what a playbook requires before it starts, against what is there."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from noetl.dsl.checking.requirements import lacking
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow: [{step: a, tool: {kind: noop}}]\n"


def said(executor: str) -> str | None:
    def cannot_run(kinds: Iterable[str]) -> tuple[str, ...]:
        return tuple(kind for kind in kinds if kind != "noop")

    return lacking(normalize(parse(f"{HEAD}executor: {executor}\n", "p.yaml")), cannot_run)


@pytest.mark.parametrize(
    "executor", ["{}", "{requires: {}}", "{requires: {tools: [noop], features: [templating, loops]}}"]
)
def test_nothing_is_missing(executor: str) -> None:
    assert said(executor) is None


@pytest.mark.parametrize(
    ("executor", "words"),
    [
        ("{requires: {tools: [noop, teleport]}}", "the tool kinds `teleport` (`executor.requires.tools`)"),
        ("{requires: {features: [telepathy]}}", "the features `telepathy` (`executor.requires.features`)"),
        ("{requires: {features: [templatin]}}", "did you mean `templating`?"),
        ("{requires: {tools: [x], features: [y]}}", "here, and the features `y`"),
    ],
)
def test_what_is_missing_is_named(executor: str, words: str) -> None:
    found = said(executor)
    assert found is not None
    assert words in found
