"""Completion of keys at every level and in every incomplete state."""

from __future__ import annotations

import pytest

from noetl.authoring.completion.complete import complete
from noetl.authoring.features.rename import Edit, apply_edits
from tests.unit.authoring.editing import HEAD, offered, typed

STEP = f"{HEAD}  - step: store\n"


@pytest.mark.parametrize(
    ("typed_text", "present", "absent"),
    [
        ("    ‸\n", {"tool", "next", "loop"}, {"step", "url"}),
        ("    to‸\n    next: fetch\n", {"tool"}, {"next", "step"}),
        ("    tool: { kind: noop }\n    lo‸\n", {"loop"}, {"tool"}),
        ("    tool:\n      kind: http\n      ‸\n", {"url", "method", "spec"}, {"kind", "command"}),
        ("    tool: { kind: http, ‸\n  - step: last\n", {"url"}, {"kind"}),
        ("    tool: { kind: http, endpoint: x, ‸ }\n", {"method"}, {"url", "endpoint"}),
        ("    tool:\n      - name: a\n        kind: python\n        ‸\n", {"code"}, {"url", "name"}),
        ("    tool:\n      - a:\n          ‸\n", {"kind", "spec"}, {"step"}),
        ("    tool:\n      - ‸\n", {"kind", "name"}, {"step"}),
        ("    tool:\n      ‸\n", {"kind"}, {"step"}),
        ("    tool: { kind: http, spec: { ‸ } }\n", {"policy", "url", "pool"}, {"code"}),
        ("    next:\n      ‸\n", {"arcs", "spec", "fetch"}, {"when"}),
        ("    next:\n      - ‸\n", {"step", "when", "fetch"}, {"arcs"}),
        ("    next:\n      arcs:\n        - step: fetch\n          ‸\n", {"when", "args"}, {"step"}),
        ("    loop:\n      in: []\n      spec:\n        ‸\n", {"mode", "reduce"}, {"in"}),
        ("    spec: { policy: { admit: { rules: [ { ‸ } ] } } }\n", {"when", "then", "else"}, {"do"}),
        ("    tool: { kind: noop, spec: { policy: { rules: [ { else: { ‸ } } ] } } }\n", {"do", "then"}, {"when"}),
        ("executor:\n  ‸\n", {"profile", "spec"}, {"workflow"}),
        ("ex‸", {"executor", "policy"}, {"workflow", "metadata"}),
    ],
)
def test_fields_of_the_level(typed_text: str, present: set[str], absent: set[str]) -> None:
    found = set(offered(STEP + typed_text))
    assert present <= found
    assert not absent & found


def test_an_empty_document_is_offered_the_sections_with_the_needed_ones_first() -> None:
    found = complete(*typed("‸")).items
    needed = [item.label for item in found if item.rank == 0]
    assert needed == ["apiVersion", "kind", "metadata", "workflow"]


def test_json_is_completed_inside_of_its_quotes() -> None:
    reading, cursor = typed('{ "apiVersion": "noetl.io/v2", "workflow": [ { "step": "a", "ne‸" } ] }')
    found = complete(reading, cursor)
    item = next(item for item in found.items if item.label == "next")
    text = apply_edits(reading.text, [Edit(found.start, cursor, item.insert)])
    assert text == reading.text.replace('"ne"', '"next"')


def test_a_key_brings_its_colon_unless_it_is_there() -> None:
    for text, line in (
        (f"{STEP}    de‸\n", "    desc: \n"),
        (f"{STEP}    de‸: x\n", "    desc: x\n"),
        (f"{STEP}    ne‸\n", "    next:\n"),
    ):
        reading, cursor = typed(text)
        found = complete(reading, cursor)
        item = next(item for item in found.items if item.label.startswith(text.split("‸")[0].split()[-1]))
        assert apply_edits(reading.text, [Edit(found.start, cursor, item.insert)]).endswith(line)


def test_fields_say_what_they_are_for() -> None:
    found = {item.label: item for item in complete(*typed(f"{STEP}    tool: {{ kind: http, ‸ }}\n")).items}
    assert found["url"].detail == "URL of the request."
    assert "rendered on the worker" in found["url"].text
    assert found["url"].rank < found["method"].rank < found["desc"].rank


def test_writes_are_offered_the_keys_that_are_known() -> None:
    assert offered(f"{STEP}    set: {{ ‸ }}\n") == ["ctx.total", "ctx.", "iter.", "step."]
    assert offered(f"{STEP}    set_ctx: {{ ‸ }}\n") == ["total"]
    assert offered(f"{STEP}    loop: {{ in: [], spec: {{ reduce: {{ ‸ }} }} }}\n") == ["ctx.total"]


def test_free_maps_and_prose_are_left_alone() -> None:
    assert offered(f"{HEAD.replace('nested:', '‸x: 1, nested:')}") == []
    assert offered(f"{STEP}    desc: something ‸\n") == []
    assert offered("# a comment ‸\napiVersion: noetl.io/v10\n") == []
