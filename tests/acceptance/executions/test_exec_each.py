"""`noetl exec --each`: one execution per line of a file, and errors by line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.run import Ran, noetl
from tests.acceptance.running import Folder
from tests.server.serving import process

DOUBLE = "- step: double\n  tool: {kind: noop, result: '{{ workload.n * workload.by }}'}\n"
ONE_AT_ONCE = {"spec": {"concurrency": {"key": "k", "on_limit": "reject"}}}
SLEEP = "- step: sleep\n  tool: {kind: sleep, seconds: 2}\n"
HALVE = "- step: halve\n  tool: {kind: python, args: {n: '{{ workload.n }}'}, code: 'result = 6 // n'}\n"
STRICT = {"spec": {"workload_schema": {"properties": {"n": {"type": "integer"}}}}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Folder, str]]:
    made = Folder(tmp_path_factory.mktemp("each"))
    made.playbook(DOUBLE, name="double", executor=STRICT, workload={"n": 1, "by": 2})
    made.playbook(HALVE, name="halve", workload={"n": 1})
    made.playbook(SLEEP, name="single", executor=ONE_AT_ONCE)
    with process(made.path, "up", auth="auto") as (url, _):
        for name in ("double", "halve", "single"):
            done = made.call("register", f"{name}.yaml", "--server", url)
            assert done.code == 0, done.err
        yield made, url


def each(folder: tuple[Folder, str], text: str, *more: str, path: str = "test/double") -> Ran:
    (folder[0].path / "orders").write_text(text, encoding="utf-8")
    return folder[0].call("exec", path, "--server", folder[1], "--each", "orders", *more)


def runs(folder: tuple[Folder, str]) -> int:
    found = folder[0].call("runs", "--json", "--limit", "1000", "--server", folder[1])
    assert found.code == 0, found.err
    return len(found.out.splitlines())


def test_one_is_started_for_each_line_and_its_id_printed(folder: tuple[Folder, str]) -> None:
    ran = each(folder, '{"n": 1}\n\n{"n": 2, "by": 5}\n{}', "--set", "by=3", "--tag", "each")
    assert ran.code == 0, ran.err
    ids = ran.out.split()
    assert len(set(ids)) == 3
    for one, values in zip(ids, ({"n": 1, "by": 3}, {"n": 2, "by": 5}, {"n": 1, "by": 3}), strict=True):
        asked, evaluated, *_ = folder[0].events(one, "--server", folder[1])
        assert (evaluated["payload"]["workload"], asked["payload"]["tags"]) == (values, ["each"])


def test_an_array_is_read_from_standard_input_and_the_starts_told_as_json(folder: tuple[Folder, str]) -> None:
    text = b'[\n  {"n": 1},\n  {"n": 2}]\n'
    ran = noetl("exec", "test/double", "--server", folder[1], "--each", "-", "--json", cwd=folder[0].path, stdin=text)
    assert ran.code == 0, ran.err
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["path"], one["repeated"]) for one in told] == [("test/double", False)] * 2


def test_it_stays_for_all_ends_and_gives_the_exit_code_of_the_first_that_is_not_completed(
    folder: tuple[Folder, str],
) -> None:
    ran = each(folder, '{"n": 3}\n{"n": 4}\n', "--wait")
    assert (ran.code, ran.out) == (0, "6\n8\n")
    assert ran.err.count("completed in") == 2
    ran = each(folder, '{"n": 3}\n{"n": 0}\n{"n": 2}', "--wait", "--json", path="test/halve")
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["status"], one.get("result")) for one in told] == [
        ("completed", 2),
        ("failed", None),
        ("completed", 3),
    ]
    assert ran.code == 1


def test_the_same_key_gives_the_same_executions_also_over_several_requests(folder: tuple[Folder, str]) -> None:
    before = runs(folder)
    text = "".join(f'{{"n": {number}}}\n' for number in range(1_003))
    first = each(folder, text, "--key", "k")
    assert first.code == 0, first.err
    assert len(set(first.out.split())) == 1_003
    assert each(folder, text, "--key", "k").out == first.out
    other = each(folder, text.replace('{"n": 1002}', '{"n": 7}'), "--key", "k")
    assert other.code == 1
    assert "other payloads" in other.err
    assert "1000 of 1003 executions have started" in other.err  # the first request was the same
    assert runs(folder) - before in range(500, 1_004)  # a page of them


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "orders is empty. Write one JSON object per line"),
        ("[]", "orders is empty"),
        ('{"n": 1}\n{"n": \n', "orders:2: not JSON: Expecting value, column 7."),
        ('{"n": 1}\n[1]\n', "orders:2: not a JSON object"),
        ('[\n{"n": 1},\n3]', "orders:3: not a JSON object"),
        ('[\n{"n": 1},\n', "orders:3: not JSON: Expecting value, column 1."),
        ('{"n": NaN}', "orders:1: not JSON: NaN is not a JSON number."),
        ('[{"n": 1},\n\n {"n": "x"}]', "(orders:3)"),
        ('{"n": 1}\n\n{"n": "x"}\n{"n": "y"}', "(orders:3)"),
    ],
)
def test_a_wrong_order_is_told_with_its_line_and_nothing_starts(
    folder: tuple[Folder, str], text: str, said: str
) -> None:
    before = runs(folder)
    ran = each(folder, text)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert runs(folder) == before


def test_what_a_limit_rejects_is_told_with_its_line(folder: tuple[Folder, str]) -> None:
    ran = each(folder, "{}\n{}\n", path="test/single")
    assert ran.code == 1
    assert len(ran.out.split()) == 1
    assert "orders:2: not started: 1 executions with the concurrency key 'k' run already" in ran.err


def test_what_cannot_be_asked_for_is_told(folder: tuple[Folder, str]) -> None:
    (folder[0].path / "latin").write_bytes('{}\n{"n": "ä"}'.encode("latin-1"))
    for arguments, said in (
        (("--each", "none"), "none: no such file"),
        (("--each", "latin"), "latin:2: not UTF-8."),
        (("--each", "double.yaml", "--follow"), "--follow shows one execution"),
    ):
        ran = folder[0].call("exec", "test/double", "--server", folder[1], *arguments)
        assert ran.code == 2
        assert said in ran.err


def test_a_large_file_is_sent_in_parts_that_a_server_takes(folder: tuple[Folder, str]) -> None:
    line = json.dumps({"n": 1, "text": "x" * 1_000_000})
    ran = each(folder, "\n".join([line] * 12), "--json")
    assert ran.code == 0, ran.err
    assert len(ran.out.splitlines()) == 12
    assert Path(folder[0].path / "orders").stat().st_size > 8 * 1024 * 1024


def test_set_takes_the_type_of_the_default_and_a_key_that_is_not_declared_gets_a_warning(
    folder: tuple[Folder, str],
) -> None:
    local, url = folder
    ran = local.call("exec", "test/double", "--server", url, "--set", "bye=4", "--wait")
    assert ran.code == 0, ran.err
    assert "noetl: warning: `workload` has no key `bye`. Did you mean 'by'?" in ran.err
    refused = local.call("exec", "test/double", "--server", url, "--set", "by=many")
    assert (refused.code, refused.out) == (2, "")
    assert "`--set by=many` must be a number, like the default 2" in refused.err


def test_a_path_that_is_nearly_right_names_the_right_one(folder: tuple[Folder, str]) -> None:
    for words in (("test/duoble",), ("test/duoble", "--set", "n=1")):
        ran = folder[0].call("exec", *words, "--server", folder[1])
        assert ran.code == 2
        assert "The catalog has no `test/duoble`. Did you mean 'test/double'? " in ran.err


def test_a_signal_that_nothing_waits_for_gets_a_warning_from_the_server(folder: tuple[Folder, str]) -> None:
    local, url = folder
    local.playbook("- {step: ask, tool: {kind: wait, signal: approved}}", name="ask")
    assert local.call("register", "ask.yaml", "--server", url).code == 0
    execution = local.call("exec", "test/ask", "--server", url).out.strip()
    sent = local.call("signal", execution, "aproved", "--json", "--server", url)
    warning = "Playbook `test/ask` names no signal `aproved`; it names `approved`. Did you mean 'approved'?"
    assert (sent.code, json.loads(sent.out)["warnings"]) == (0, [warning])
    assert f"noetl: warning: {warning}" in sent.err
    assert "warning" not in local.call("signal", execution, "approved", "--server", url).err
