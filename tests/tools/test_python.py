"""Kind `python` in real child processes: inputs, results, failures."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import pytest_asyncio

from tests.tools.attempts import Attempts

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def attempts(tmp_path: Path) -> AsyncIterator[Attempts]:
    made = Attempts({"db": {"user": "ann"}}, str(tmp_path))
    yield made
    await made.close()


RESULTS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "a variable called result": ("result = x + 1", {"x": 1}, 2),
    "no result is null": ("y = x + 1", {"x": 1}, None),
    "a top-level return": ("return {'sum': a + b}", {"a": 1, "b": 2}, {"sum": 3}),
    "a return in a branch": ("if x > 1:\n    return 'big'\nreturn 'small'", {"x": 1}, "small"),
    "a return in some branch, else result": ("if x:\n    return 1\nresult = 2", {"x": 0}, 2),
    "a return in a loop and a try": (
        "for n in numbers:\n    try:\n        if n > 2:\n            return n\n    finally:\n        seen = n",
        {"numbers": [1, 2, 3, 4]},
        3,
    ),
    "main with inputs by name": ("def main(a, b=5):\n    return a + b", {"a": 1, "c": 9}, 6),
    "an async main": ("import asyncio\nasync def main(a):\n    await asyncio.sleep(0)\n    return a", {"a": 4}, 4),
    "main with everything": ("def main(input_data):\n    return input_data", {"a": 1}, {"a": 1}),
    "main with the rest": ("def main(a, **rest):\n    return [a, rest]", {"a": 1, "b": 2}, [1, {"b": 2}]),
    "main without parameters": ("def main():\n    return x", {"x": 3}, 3),
    "result wins over main": ("def main():\n    return 1\nresult = main() + 1", {}, 2),
    "an imported main is not called": ("from unittest import main", {}, None),
    "a top-level await": ("import asyncio\nawait asyncio.sleep(0)\nresult = 1", {}, 1),
    "an await and a return": ("import asyncio\nawait asyncio.sleep(0)\nreturn 2", {}, 2),
    "a docstring first": ('"""What it does."""\nresult = 1', {}, 1),
    "a docstring and a return": ('"""What it does."""\nreturn 1', {}, 1),
    "a future import and a return": ("from __future__ import annotations\ndef f(x: Y): return x\nreturn f(1)", {}, 1),
    "helper functions that call each other": (
        "def even(n):\n    return n == 0 or odd(n - 1)\ndef odd(n):\n    return n != 0 and even(n - 1)\nresult = even(x)",
        {"x": 4},
        True,
    ),
    "helper functions and a return": (
        "def twice(n):\n    return add(n, n)\ndef add(a, b):\n    return a + b\nreturn twice(x)",
        {"x": 4},
        8,
    ),
    "an input named like a local": ("x = x + 1\nreturn x", {"x": 1}, 2),
    "an input that a function reads": ("def f():\n    return x\nresult = f()", {"x": 1}, 1),
    "an annotated name and a return": ("total: int = 0\nfor n in [1, 2]:\n    total += n\nreturn total", {}, 3),
    "a comprehension over a local and a return": (
        "k = 2\nreturn [n * k for n in numbers]",
        {"numbers": [1, 2]},
        [2, 4],
    ),
    "a class and a return": ("class A:\n    size = 3\nreturn A().size", {}, 3),
    "a dataclass": (
        "from __future__ import annotations\nfrom dataclasses import *\n@dataclass\nclass A:\n    n: int\nresult = asdict(A(1))",
        {},
        {"n": 1},
    ),
    "a global of a function": ("def f():\n    global result\n    result = 5\nf()", {}, 5),
    "an input called result is not the result": ("y = result", {"result": 3}, None),
    "an input called result, changed": ("result = result + 1", {"result": 3}, 4),
    "an input called result, in the code of a class": ("class A:\n    result = 1\ny = A.result", {"result": 3}, None),
    "a function called result is not the result": ("def result():\n    return 1", {}, None),
    "a module called result is not the result": ("import json as result", {}, None),
    "a class called result is not the result": ("class result:\n    pass", {}, None),
    "a function called result beside main": (
        "def result():\n    return 1\ndef main():\n    return result() + 1",
        {},
        2,
    ),
    "a decorated function called result beside main": (
        "from functools import lru_cache\n@lru_cache\ndef result(n):\n    return n + 1\ndef main():\n    return result(4)",
        {},
        5,
    ),
    "a built-in called result beside main": (
        "from math import sqrt as result\ndef main():\n    return result(4)",
        {},
        2.0,
    ),
    "main wins over an imported result": ("from math import tau as result\ndef main():\n    return 1", {}, 1),
    "result wins over main, set by a function": (
        "def main():\n    return 1\ndef f():\n    global result\n    result = 2\nf()",
        {},
        2,
    ),
    "a result that a pattern takes": ("match 5:\n    case result:\n        pass", {}, 5),
    "a result that is imported": ("from math import tau as result", {}, 6.283185307179586),
    "a result among the globals": ("globals()['result'] = 5", {}, 5),
    "a result that is deleted": ("result = 5\ndel result", {}, None),
    "an input called result, deleted": ("del result", {"result": 3}, None),
    "tuples are lists": ("result = (1, (2,))", {}, [1, [2]]),
    "large numbers stay exact": ("result = 2 ** 80", {}, 2**80),
    "any text": ("result = 'žluťoučký 🐎 \\x00'", {}, "žluťoučký 🐎 \x00"),
    "args and input hold the inputs": ("result = [args['a'], input['a'], input_data['a']]", {"a": 1}, [1, 1, 1]),
    "what every task has comes before a default of main": (
        "def main(a, input_data=None, context=None, args=None, other=5):\n    return [input_data['a'], args['a'], type(context).__name__, other]",
        {"a": 1},
        [1, 1, "dict", 5],
    ),
    "an input called args": ("result = args", {"args": [1]}, [1]),
    "the execution's id slices": ("result = execution_id[:1]", {}, "7"),
    "leaving with success": ("result = 1\nimport sys\nsys.exit()", {}, 1),
    "not the main program": ("result = __name__ == '__main__'", {}, False),
}


@pytest.mark.parametrize("case", RESULTS)
async def test_how_code_gives_its_result(attempts: Attempts, case: str) -> None:
    code, given, expected = RESULTS[case]
    assert (await attempts.python(code, **given)).result == expected


async def test_the_loop_variable_is_a_global_and_the_context_holds_everything(attempts: Attempts) -> None:
    names = {"iter": {"order": {"id": 3}, "index": 0, "_index": 0}, "workload": {"n": 1}}
    code = "def f():\n    return order['id']\nresult = [f(), context['workload']['n'], list(iter([1]))]"
    assert (await attempts.python(code, names=names)).result == [3, 1, [1]]


async def test_an_input_wins_over_the_loop_variable(attempts: Attempts) -> None:
    assert (await attempts.python("result = order", names={"iter": {"order": 1}}, order=2)).result == 2


@pytest.mark.parametrize(
    ("libs", "code"),
    [
        ({"dt": "datetime"}, "result = dt.date(2030, 1, 2).isoformat()"),
        ({"date": {"from": "datetime", "import": "date"}}, "result = date(2030, 1, 2).isoformat()"),
        ({"times": {"from": "datetime", "import": ["date", "time"]}}, "result = date(2030, 1, 2).isoformat()"),
        (["datetime", "os.path"], "result = os.path.join(datetime.date(2030, 1, 2).isoformat())"),
        ({"path": "os.path"}, "result = path.join('2030-01-02')"),
        (["PyYAML"], "result = yaml.safe_load('\"2030-01-02\"')"),
        (["pyyaml >= 5, < 99"], "result = yaml.safe_load('\"2030-01-02\"')"),
        ({"y": "PyYAML"}, "result = y.safe_load('\"2030-01-02\"')"),
        ({"load": {"from": "PyYAML", "import": "safe_load"}}, "result = load('\"2030-01-02\"')"),
        ({"jinja2": "Jinja2[i18n]"}, "result = jinja2.Template('2030-01-02').render()"),
        (["typing-extensions"], "result = typing_extensions.cast(str, '2030-01-02')"),
        (["psycopg-binary"], "result = psycopg.Binary and '2030-01-02'"),
    ],
)
async def test_libraries(attempts: Attempts, libs: Any, code: str) -> None:
    assert (await attempts.python(code, {"libs": libs})).result == "2030-01-02"


async def test_code_from_elsewhere(attempts: Attempts, tmp_path: Path) -> None:
    encoded = base64.b64encode(b"result = x + 1").decode()
    assert (await attempts.run("python", {"code_b64": encoded}, input={"x": 1})).result == 2
    (tmp_path / "clean.py").write_text("result = x + 2")
    assert (await attempts.run("python", {"script": {"uri": "./clean.py"}}, input={"x": 1})).result == 3
    inline = {"script": {"content": "result = 4", "source": {"type": "inline"}}}
    assert (await attempts.run("python", inline)).result == 4
    for name in ("code", "content"):
        for uri in ({}, {"uri": "inline"}):
            source = {"script": {**uri, "source": {"type": "inline", name: "result = x * 5"}}}
            assert (await attempts.run("python", source, input={"x": 1})).result == 5


async def test_a_library_that_is_not_there_is_named_as_it_was_written(attempts: Attempts) -> None:
    for name in ("no-such-thing", "psycopg2-binary"):
        tried = await attempts.python("result = 1", {"libs": [name]})
        assert tried.error.code == "PY_ModuleNotFoundError"
        assert name in tried.error.message


async def test_a_module_that_lacks_another_one_is_not_looked_for_elsewhere(attempts: Attempts, tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, folder)\nresult = __import__('importlib').import_module('lacking')"
    (tmp_path / "lacking.py").write_text("import no_such_thing")
    tried = await attempts.run("python", {"code": code}, input={"folder": str(tmp_path)})
    assert "no_such_thing" in tried.error.message


async def test_code_that_is_not_there(attempts: Attempts) -> None:
    missing = (await attempts.run("python", {"script": {"uri": "none.py"}})).error
    assert (missing.kind, missing.retryable) == ("not_found", False)
    assert "none.py: No such file or directory" in missing.message
    assert (await attempts.run("python", {"code_b64": "%%%%x"})).error.kind == "parse"


async def test_what_is_printed_becomes_log_lines(attempts: Attempts) -> None:
    code = "import sys, os\nprint('one\\ntwo')\nprint('three', file=sys.stderr)\nos.system('echo four')\nprint('five', end='')"
    tried = await attempts.python(code)
    assert sorted(tried.lines) == ["five", "four", "one", "three", "two"]
    assert tried.lines.index("one") < tried.lines.index("two")


async def test_lines_belong_to_the_attempt_that_printed_them(attempts: Attempts) -> None:
    for number in range(20):
        assert (await attempts.python("print(n)", n=number)).lines == [str(number)]


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("import datetime\nresult = {'when': datetime.date(2030, 1, 1)}", "`result.when` is of type date"),
        ("result = {'rows': [1, {2, 3}]}", "`result.rows[1]` is of type set"),
        ("result = {'f': len}", "`result.f` is of type builtin_function_or_method"),
        ("result = [float('nan')]", "`result[0]` is nan"),
        ("result = {(1, 2): 3}", "a key of `result` is of type tuple"),
        ("result = []\nresult.append(result)", "too deep, or holds itself"),
        ("result = '\\ud800'", "`result` is text that cannot be written as UTF-8"),
        ("return object()", "`result` is of type object"),
        ("return b'x'", "`result` is of type bytes"),
        ("import decimal\nreturn [decimal.Decimal(1)]", "`result[0]` is of type Decimal"),
        ("return (n for n in [1])", "`result` is of type generator"),
        ("return {'n': 10 ** 5000}", "`result.n` is a number of too many digits"),
    ],
)
async def test_a_result_that_is_not_json(attempts: Attempts, code: str, place: str) -> None:
    error = (await attempts.python(code)).error
    assert (error.kind, error.retryable) == ("schema", False)
    assert place in error.message


@pytest.mark.parametrize(
    ("code", "name", "retryable", "message"),
    [
        ("x = 1\nint('no')", "ValueError", False, "(line 2 of the code)"),
        ("raise RetryableError('later')", "RetryableError", True, "RetryableError: later"),
        ("raise FatalError('never')", "FatalError", False, "FatalError: never"),
        ("raise SinkError('full')", "SinkError", False, "SinkError: full"),
        (
            "from noetl.errors import RetryableError as R\nraise R('later')", "RetryableError", True,
            "RetryableError: later",
        ),
        ("from noetl import RetryableError\nraise RetryableError('later')", "RetryableError", True, "later"),
        ("import noetl\nraise noetl.FatalError('never')", "FatalError", False, "never"),
        ("class Busy(RetryableError): pass\nraise Busy('b')", "Busy", True, "Busy: b"),
        ("class RetryableError(Exception): pass\nraise RetryableError('own')", "RetryableError", True, "own"),
        ("import sys\nsys.exit('enough')", "SystemExit", False, "enough"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", False, "KeyboardInterrupt"),
        ("def f(:", "SyntaxError", False, "line 1"),
        ("import no_such_module", "ModuleNotFoundError", False, "install it where the worker runs"),
        ("def main(a): return a", "TypeError", False, "missing 1 required positional argument: 'a'"),
        ("def f(n): return f(n + 1)\nf(0)", "RecursionError", False, "recursion"),
        ("unknown + 1", "NameError", False, "'unknown' is not defined"),
    ],
)  # fmt: skip
async def test_what_code_raises(attempts: Attempts, code: str, name: str, retryable: bool, message: str) -> None:
    tried = await attempts.python(code)
    assert tried.error.kind == "python"
    assert tried.error.code == f"PY_{name}"
    assert tried.error.retryable is retryable
    assert message in tried.error.message
    assert tried.outcome.helpers["py"]["exception_type"] == name
    assert name in tried.outcome.helpers["py"]["traceback"]
    assert "child_code" not in tried.outcome.helpers["py"]["traceback"]


async def test_an_error_has_the_line_of_code_and_the_last_frames(attempts: Attempts) -> None:
    where = (await attempts.python("import json\n\ndef f(x):\n    return json.loads(x)\n\nf('{')")).error.where
    assert where is not None
    assert (where["line"], where["source"]) == (4, "return json.loads(x)")
    first, second, *others = where["frames"]
    assert first == {"line": 6, "in": "<module>", "source": "f('{')"}
    assert second == {"line": 4, "in": "f", "source": "return json.loads(x)"}
    assert [one["file"].rpartition("/")[2] for one in others] == ["__init__.py", "decoder.py", "decoder.py"]


@pytest.mark.parametrize(
    ("code", "where"),
    [
        ("x = 1\nif x:\nx", {"line": 3, "source": "x"}),
        ("x = 1\nreturn 1 / 0", {"line": 2, "source": "return 1 / 0"}),
        ("def f(n): return f(n + 1)\nf(0)", {"line": 1, "source": "def f(n): return f(n + 1)"}),
        (f"x = [{'1, ' * 1000}]; x.y", {"line": 1, "source": f"x = [{'1, ' * 1000}]"[:160] + "…"}),
    ],
)
async def test_the_place_of_an_error_is_bounded(attempts: Attempts, code: str, where: dict[str, Any]) -> None:
    found = dict((await attempts.python(code)).error.where or {})
    assert len(found.pop("frames", ())) <= 6
    assert found == where


async def test_an_error_in_a_script_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("def main():\n    return 1 / 0\n")
    attempts = Attempts(folder=str(tmp_path))
    tried = await attempts.run("python", {"script": {"uri": "./clean.py"}})
    await attempts.close()
    assert tried.error.message == "ZeroDivisionError: division by zero (line 2 of ./clean.py)"
    assert tried.error.where is not None
    assert (tried.error.where["file"], tried.error.where["line"]) == ("./clean.py", 2)
    assert 'File "./clean.py", line 2' in tried.outcome.helpers["py"]["traceback"]


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("raise CancelError('no longer wanted')", "cancelled", False),
        ("raise TimeoutError('too slow')", "timeout", True),
        ("from noetl.errors import TimeoutError\nraise TimeoutError('too slow')", "timeout", True),
        ("class Never(TimeoutError, FatalError): pass\nraise Never()", "timeout", False),
    ],
)
async def test_what_an_error_means_is_told_by_its_name(
    attempts: Attempts, code: str, kind: str, retryable: bool
) -> None:
    error = (await attempts.python(code)).error
    assert (error.kind, error.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("raise RetryableError('x')", "RetryableError"),
        ("class Busy(RetryableError): pass\nraise Busy('x')", "RetryableError"),
        ("raise FatalError('x')", "FatalError"),
        ("raise SinkError('x')", "SinkError"),
        ("raise CancelError('x')", "CancelError"),
        ("from noetl import TimeoutError\nraise TimeoutError('x')", "TimeoutError"),
        ("raise TimeoutError('x')", "TimeoutError"),
        ("1 / 0", "FatalError"),
    ],
)
async def test_the_class_of_an_error_is_told(attempts: Attempts, code: str, named: str) -> None:
    told = (await attempts.python(code)).outcome.as_data()["error"]
    assert told["class"] == named


async def test_importing_the_errors_costs_next_to_nothing(attempts: Attempts) -> None:
    code = "import sys\nfrom noetl import RetryableError\nresult = [m for m in sys.modules if m.startswith('noetl.c')]"
    assert (await attempts.python(code)).outcome.result == []  # neither the client nor the command line is loaded


async def test_an_error_may_say_when_to_try_again_and_why(attempts: Attempts) -> None:
    error = (await attempts.python("raise RetryableError('busy', retry_after=2, details={'queue': 7})")).error
    assert (error.retry_after, error.details) == (2.0, {"queue": 7})
    odd = (await attempts.python("raise RetryableError('busy', retry_after='soon', details={1: object()})")).error
    assert (odd.retry_after, odd.details, odd.retryable) == (None, None, True)


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.stdout.close()\nsys.stderr.close()",
        "import sys\nsys.stdout = sys.stderr = sys.stdin = None", "import os\nfor fd in range(3): os.close(fd)",
        "import os\nos.dup2(os.open('/dev/null', os.O_WRONLY), 1)", "import json\njson.dumps = json.loads = None",
    ],
)  # fmt: skip
async def test_what_code_does_to_the_process_is_mended_for_the_next_task(attempts: Attempts, code: str) -> None:
    assert (await attempts.python(code + "\nresult = {'done': 1}")).result == {"done": 1}
    tried = await attempts.python("import sys\nprint('here')\nresult = [sys.stdin.read()]")
    assert (tried.result, tried.lines) == ([""], ["here"])


async def test_output_that_is_no_text_is_told_as_well_as_it_can(attempts: Attempts) -> None:
    tried = await attempts.python("import sys\nsys.stdout.buffer.write(b'a\\xff\\n')\nresult = 1")
    assert (tried.result, tried.lines) == (1, ["a\ufffd"])


async def test_a_thread_that_outlives_its_task_meets_no_other(attempts: Attempts) -> None:
    code = """
import os, threading, time
def late():
    while True:
        time.sleep(0.001)
        print("late")
threading.Thread(target=late).start()
result = os.getpid()
"""
    first = (await attempts.python(code)).result
    second = await attempts.python("import os, time\ntime.sleep(0.1)\nresult = os.getpid()")
    assert second.result != first
    assert second.lines == []


async def test_code_that_writes_to_files_not_its_own_is_an_error(attempts: Attempts) -> None:
    code = """
import os
for fd in range(3, 64):
    try:
        os.write(fd, b"garbage, and more of it")
    except OSError:
        pass
"""
    error = (await attempts.python(code)).error
    assert (error.kind, error.code) == ("python", "PY_GARBLED")
    assert (await attempts.python("result = 1")).result == 1


async def test_an_exception_that_cannot_tell_itself_and_one_that_tells_too_much(attempts: Attempts) -> None:
    mute = "class Mute(Exception):\n    def __str__(self): raise ValueError\nraise Mute()"
    assert "(its text cannot be read: ValueError)" in (await attempts.python(mute)).error.message
    long = await attempts.python("raise ValueError('x' * 10_000_000)")
    assert len(long.error.message) < 30_000
    assert len(long.outcome.helpers["py"]["traceback"]) < 60_000


async def test_a_traceback_shows_the_authors_lines(attempts: Attempts) -> None:
    tried = await attempts.python("def half(n):\n    return 1 / n\nresult = half(0)")
    text = tried.outcome.helpers["py"]["traceback"]
    assert 'File "<try>", line 2, in half\n    return 1 / n' in text


async def test_a_library_that_is_not_there(attempts: Attempts) -> None:
    error = (await attempts.python("result = 1", {"libs": {"np": "no_such_library"}})).error
    assert error.code == "PY_ModuleNotFoundError"
    assert "no_such_library" in error.message


async def test_the_credential_of_the_task(attempts: Attempts) -> None:
    assert (await attempts.python("result = auth['user']", auth="db")).result == "ann"
    assert (await attempts.python("result = 1", auth="none")).error.kind == "auth"


async def test_a_run_leaves_nothing_for_the_next(attempts: Attempts) -> None:
    await attempts.python("import os\nleft = 1\nos.chdir('/')\nos.environ['LEFT'] = 'x'")
    code = dedent(
        """
        import os
        result = ["left" in globals(), os.environ.get("LEFT"), os.getcwd() == "/"]
        """
    )
    assert (await attempts.python(code)).result == [False, None, False]


async def test_fields_that_do_not_fit(attempts: Attempts) -> None:
    error = (await attempts.run("python", {"code": "result = 1", "libs": 5})).error
    assert error.kind == "schema"
    assert "libs" in error.message
