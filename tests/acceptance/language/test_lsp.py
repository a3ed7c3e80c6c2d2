"""The real language server over stdin and stdout, and over a local port."""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path

import pytest

from tests.acceptance.editor import Editor, applied, server
from tests.acceptance.run import noetl

URI = "file:///playbooks/orders.yaml"
GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: orders, path: examples/orders }
workload: { api: "http://127.0.0.1:8080" } # 😀
workflow:
  - step: fetch
    tool: { kind: http, url: "{{ workload.api }}/orders" }
    next: { arcs: [ { step: store, when: "{{ '😀' != '' and fetch.status == 200 }}" } ] }
  - step: store
    tool: { kind: noop, result: "{{ fetch.data }}" }
"""


def place(text: str, word: str, behind: int = 0) -> tuple[int, int]:
    """Return line and column, in UTF-16 code units, of a word in a text."""
    before = text[: text.index(word) + behind]
    last = before.split("\n")[-1]
    return before.count("\n"), len(last.encode("utf-16-le")) // 2


def test_an_editor_gets_everything_from_one_conversation() -> None:
    with server() as running:
        editor = running.editor
        offered = editor.start(textDocument={"rename": {"prepareSupport": True}})
        assert offered["serverInfo"]["name"] == "noetl"
        assert offered["capabilities"]["renameProvider"] == {"prepareProvider": True}

        broken = GOOD.replace("step: store, when", "step: stroe, when")
        editor.open(URI, broken)
        # `store` is not reached either: its cause is reported once.
        assert editor.found(URI) == [("NOE201", *place(broken, "stroe"))]
        told = editor.diagnostics[URI][0]
        assert (told["source"], told["severity"]) == ("noetl", 1)
        assert "Did you mean 'store'?" in told["message"]
        lines = {"start": told["range"]["start"], "end": told["range"]["end"]}
        context = {"diagnostics": [told]}
        document = {"uri": URI}
        (fix,) = editor.result(
            "textDocument/codeAction", {"textDocument": document, "range": lines, "context": context}
        )
        assert applied(broken, fix["edit"]["changes"][URI]) == GOOD

        editor.change(URI, GOOD, 2)
        assert editor.found(URI) == []

        typing = GOOD + '  - step: tell\n    tool:\n      kind: http\n      url: "{{ workload.\n'
        editor.change(URI, typing, 3)
        items = editor.at("completion", URI, *place(typing, "{{ workload.\n", 12))["items"]
        assert [item["label"] for item in items] == ["api"]
        editor.change(URI, GOOD, 4)

        about = editor.at("hover", URI, *place(GOOD, "http,"))
        assert "tool kind" in about["contents"]["value"]
        (definition,) = editor.at("definition", URI, *place(GOOD, "fetch.status"))
        line, column = place(GOOD, "fetch\n")
        assert definition["range"]["start"] == {"line": line, "character": column}
        symbols = editor.result("textDocument/documentSymbol", {"textDocument": document})
        workflow = next(symbol for symbol in symbols if symbol["name"] == "workflow")
        assert [child["name"] for child in workflow["children"]] == ["fetch", "store"]

        here = place(GOOD, "fetch.status")
        assert editor.at("prepareRename", URI, *here)["placeholder"] == "fetch"
        edit = editor.at("rename", URI, *here, newName="load")
        renamed = applied(GOOD, edit["changes"][URI])
        assert renamed == re.sub(r"\bfetch\b", "load", GOOD)
        editor.change(URI, renamed, 5)
        assert editor.found(URI) == []

        editor.leave()
        assert running.end() == (0, "")


def test_a_refused_rename_is_an_answer_and_no_stack_trace() -> None:
    with server() as running:
        editor = running.editor
        editor.start()
        editor.open(URI, GOOD)
        line, column = place(GOOD, "fetch\n")
        params = {"textDocument": {"uri": URI}, "position": {"line": line, "character": column}, "newName": "store"}
        answer = editor.ask("textDocument/rename", params)
        assert answer["error"]["message"] == "A step named 'store' already exists. Choose another name."
        editor.leave()
        assert running.end() == (0, "")


def test_other_documents_stay_silent_and_closed_ones_are_cleared() -> None:
    with server() as running:
        editor = running.editor
        editor.start()
        editor.open("file:///compose.yaml", "services: {web: {image: [}}")
        editor.open(URI, GOOD.replace("kind: http", "kind: htp"))
        assert [code for code, _, _ in editor.found(URI)] == ["NOE501"]
        assert editor.found("file:///compose.yaml") == []
        assert editor.at("completion", "file:///compose.yaml", 0, 3) is None
        editor.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        assert editor.found(URI) == []
        editor.open("untitled:one", "workflow: []", language="noetl-playbook")
        assert "NOE104" in {code for code, _, _ in editor.found("untitled:one")}
        editor.leave()
        assert running.end()[0] == 0


def test_garbage_does_not_end_the_conversation() -> None:
    texts = (
        "",
        "\x00\x01",
        "apiVersion: noetl.io/v10\n\t- {[\"'",
        "- " * 500,
        "{" * 300,
        "\ufeffapiVersion: noetl.io/v2",
    )
    with server() as running:
        editor = running.editor
        editor.start()
        editor.open(URI, GOOD, language="noetl-playbook")
        for version, text in enumerate(texts, 2):
            editor.change(URI, text, version)
            for method in ("completion", "hover", "definition"):
                editor.at(method, URI, 0, 3)
                editor.at(method, URI, 99, 99)
            editor.result("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
        assert editor.ask("noetl/nothing")["error"]["code"] == -32601
        editor.change(URI, GOOD, 99)
        assert editor.found(URI) == []
        editor.leave()
        code, errors = running.end()
        assert code == 0
        assert "Traceback" not in errors


def test_a_message_that_makes_no_sense_is_logged_and_the_next_one_works() -> None:
    with server() as running:
        editor = running.editor
        editor.start()
        editor.open(URI, GOOD)
        editor.notify("textDocument/didChange", {"nonsense": True})
        assert "tool kind" in editor.at("hover", URI, *place(GOOD, "http,"))["contents"]["value"]
        editor.leave()
        code, errors = running.end()
        assert code == 0
        assert "noetl lsp: " in errors


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_columns_are_counted_as_the_editor_wants(encoding: str) -> None:
    text = GOOD.replace("fetch.status", "fecth.status")
    line = next(line for line in text.split("\n") if "fecth" in line)
    before = line[: line.index("fecth")]
    columns = {
        "utf-8": len(before.encode()),
        "utf-16": len(before.encode("utf-16-le")) // 2,
        "utf-32": len(before),
    }
    assert len(set(columns.values())) == 3
    with server() as running:
        editor = running.editor
        offered = editor.start(general={"positionEncodings": [encoding]})
        assert offered["capabilities"]["positionEncoding"] == encoding
        editor.open(URI, text)
        assert [column for _, _, column in editor.found(URI)] == [columns[encoding]]
        editor.leave()
        assert running.end() == (0, "")


def test_child_playbooks_are_looked_for_beside_the_document(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(GOOD, encoding="utf-8")
    uri = (tmp_path / "parent.yaml").as_uri()
    text = GOOD.replace('kind: http, url: "{{ workload.api }}/orders"', "kind: playbook, path: child.yaml")
    with server(cwd=tmp_path) as running:
        editor = running.editor
        editor.start(tmp_path)
        editor.open(uri, text)
        assert editor.found(uri) == []
        editor.change(uri, text.replace("child.yaml", "chidl.yaml"), 2)
        assert [code for code, _, _ in editor.found(uri)] == ["NOE209"]
        editor.leave()
        assert running.end()[0] == 0


def test_an_editor_that_goes_away_ends_the_server() -> None:
    with server() as running:
        running.editor.start()
        running.editor.notify("exit", {})
        assert running.end()[0] == 1


def test_an_interrupt_ends_a_server_that_waits() -> None:
    with server() as running:
        running.editor.start()
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(timeout=60) == -signal.SIGINT


def test_it_listens_on_a_local_port() -> None:
    with server("--tcp", "127.0.0.1:0") as running:
        assert running.process.stderr is not None
        port = 0
        while not port:
            line = running.process.stderr.readline().decode()
            assert line, "the server has ended"
            found = re.search(r"'127\.0\.0\.1', (\d+)", line)
            port = int(found[1]) if found else 0
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            stream = connection.makefile("rwb")
            editor = Editor(stream, stream)
            editor.start()
            editor.open(URI, GOOD.replace("step: store, when", "step: stroe, when"))
            assert [code for code, _, _ in editor.found(URI)] == ["NOE201"]
            editor.leave()
            stream.close()
        assert running.end()[0] == 0


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("0.0.0.0:7878", "loopback"),
        ("example.org:7878", "loopback"),
        ("7878x", "HOST:PORT"),
        ("127.0.0.1:99999", "HOST:PORT"),
    ],
)
def test_an_address_that_others_could_reach_or_nobody_can_is_refused(address: str, reason: str) -> None:
    ran = noetl("lsp", "--tcp", address)
    assert ran.code == 2
    assert reason in ran.err
    assert ran.out == ""


TESTS = """\
tests:
  - name: all is well # 😀
    mocks:
      fetch: { ok: { status: 200 } }
      stor: { ok: 1 }
    expect: { status: completed, route: [fetch, store] }
"""


def told(editor: Editor, uri: str) -> list[tuple[str, int, int]]:
    """Return the first line, line and column of the diagnostics published last."""
    editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    return [
        (one["message"].partition("\n")[0], one["range"]["start"]["line"], one["range"]["start"]["character"])
        for one in editor.diagnostics[uri]
    ]


def test_files_of_tests_are_held_to_their_playbook(tmp_path: Path) -> None:
    file = tmp_path / "orders.test.yaml"
    (tmp_path / "orders.yaml").write_text(GOOD, encoding="utf-8")
    uri = file.as_uri()
    with server() as running:
        editor = running.editor
        editor.start()
        editor.open(uri, TESTS)
        assert told(editor, uri) == [("Unknown step or task `stor`. Did you mean `store`?", 4, 6)]
        right = TESTS.replace("stor:", "store:")
        editor.change(uri, right, 2)
        assert told(editor, uri) == []
        wrong = right.replace("status: completed", "status: complete, rout: []")
        editor.change(uri, wrong, 3)
        assert [(line, column) for _, line, column in told(editor, uri)] == [
            place(wrong, "complete"),
            place(wrong, "rout:"),
        ]
        editor.change(uri, right, 4)
        (tmp_path / "orders.yaml").write_text(GOOD.replace("store", "keep"), encoding="utf-8")
        editor.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        assert [text for text, _, _ in told(editor, uri)] == [
            "Unknown step or task `store`.", "Unknown step `store`.",
        ]  # fmt: skip
        (tmp_path / "orders.yaml").unlink()
        editor.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        assert told(editor, uri) == [("No playbook `orders.yaml` beside this file.", 0, 0)]
        editor.leave()


def test_a_file_of_tests_that_is_nowhere_yet_is_read_by_itself() -> None:
    uri = "untitled:new.test.yaml"
    with server() as running:
        editor = running.editor
        editor.start()
        editor.open(uri, TESTS.replace("name:", "nam:"))
        assert [(line, column) for _, line, column in told(editor, uri)] == [(1, 4)]
        editor.leave()
