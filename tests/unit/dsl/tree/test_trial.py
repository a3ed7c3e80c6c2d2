"""Trees for trials: what is cut off, what has changed, what may run."""

from __future__ import annotations

from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.pin import pinned, unpinned
from noetl.dsl.tree.playbook import Playbook
from noetl.dsl.tree.trial import changed_steps, cut_after, only, tasks_from

TEXT = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: p, path: p}
executor: {spec: {final_step: last}}
workflow:
  - {step: a, tool: {kind: noop}, next: [{step: b, when: "{{ ctx.x }}"}, {step: c}]}
  - {step: b, tool: {kind: noop}, next: c}
  - {step: c, tool: {kind: noop}}
  - {step: last, tool: {kind: noop}}
"""


def tree(text: str) -> Playbook:
    return unpinned(pinned(normalize(parse(text, "p")))[0])


def reached(playbook: Playbook, start: str) -> list[str]:
    return [step for step, _ in tasks_from(playbook, start)]


def test_what_follows_a_step_is_cut_off() -> None:
    whole = tree(TEXT)
    assert reached(whole, "a") == ["a", "b", "c", "last"]
    assert reached(whole, "b") == ["b", "c", "last"]
    assert reached(cut_after(whole, "a"), "a") == ["a", "last"]
    assert reached(cut_after(whole, "b"), "a") == ["a", "b", "c", "last"]


def test_one_step_alone_is_entry_and_end() -> None:
    alone = only(tree(TEXT), "b")
    assert reached(alone, "b") == ["b"]
    assert alone.executor.setting("entry_step") == "b"


def test_changed_steps_are_those_that_differ_or_are_new_or_gone() -> None:
    whole = tree(TEXT)
    assert changed_steps(whole, whole) == frozenset()
    assert changed_steps(whole, tree(TEXT.replace("next: c", "next: last"))) == {"b"}
    assert changed_steps(whole, tree(TEXT.replace("step: last,", "step: end,"))) == {"last", "end"}
