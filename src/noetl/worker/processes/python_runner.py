"""Run the code of a `python` task in a child; return the outcome as plain data.

Every run is a module of its own: inputs are its globals, so helper functions see each other and the inputs. A top-level
`return` works because such code becomes the body of a function whose names are all global. Independent of processes and
sockets; only the standard library is imported, so that a child starts small. Tested in tests/tools/test_python.py.
"""

from __future__ import annotations

import ast
import inspect
import json
import linecache
import re
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from noetl.errors import PREDEFINED

MODULE: Final = "noetl_task"
_BODY: Final = "__noetl_body__"
_MOST_DEPTH: Final = 200
_dumps = json.dumps  # code may replace what a module holds
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
MOST_TEXT: Final = 20_000  # characters of a message, a line of code or a traceback; the worker masks and cuts them
_MOST_SECONDS: Final = 10.0**12
_MOST_FRAMES: Final = 6  # of an error's place
_PREDEFINED: Final = {error.__name__: error for error in PREDEFINED}
_KINDS: Final = {"CancelError": "cancelled", "TimeoutError": "timeout"}
# Passed to `main` even if it has a default.
_ALWAYS: Final = frozenset({"input_data", "context", "args", "input", "execution_id"})
_PLAIN = frozenset((dict, list, tuple, str, int, float, bool, type(None)))  # a function or module is no result
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


# Modules of distributions with other names, for those that are not installed under their own.
_DISTRIBUTIONS: Final = {
    "psycopg2_binary": "psycopg2", "pyyaml": "yaml", "python_dateutil": "dateutil", "scikit_learn": "sklearn",
    "beautifulsoup4": "bs4", "pillow": "PIL", "opencv_python": "cv2", "python_dotenv": "dotenv", "pyjwt": "jwt",
    "google_cloud_storage": "google.cloud.storage", "google_cloud_bigquery": "google.cloud.bigquery",
    "google_auth": "google.auth", "mysql_connector_python": "mysql.connector", "protobuf": "google.protobuf",
    "snowflake_connector_python": "snowflake.connector", "psycopg_binary": "psycopg", "attrs": "attr",
}  # fmt: skip


class _NotJsonError(Exception):
    """The result holds something that JSON cannot represent."""


def run(job: Mapping[str, Any]) -> bytes:
    """Run one job; return the answer as JSON: a result, or an error with its kind."""
    try:
        value = _value(job)
    except SystemExit as left:
        if left.code not in (None, 0):
            return _answer(_raised(left, job))
        value = None
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its outcome
        return _answer(_raised(error, job))
    try:
        return b'{"result":' + _json(value) + b"}"
    except _NotJsonError as problem:
        return _answer({"kind": "schema", "said": str(problem)})


def too_large(size: int, most: int) -> bytes:
    """Return the answer of code whose result exceeds a limit."""
    message = (
        f"the result of the code has {size:,} bytes, and at most {most:,} are accepted; give back less, or write it to a "
        "file or table"
    )
    return _answer(
        {"kind": "schema", "code": "RESULT_TOO_LARGE", "said": message, "details": {"bytes": size, "most": most}}
    )


def _answer(error: Mapping[str, Any]) -> bytes:
    return _dumps({"error": error}).encode()


def _value(job: Mapping[str, Any]) -> Any:
    source, name = job["code"], _name(job)
    code, returns = _compiled(source, name)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = types.ModuleType(MODULE)
    names = module.__dict__
    given = job.get("input", {})
    names |= job.get("variables", {})
    names |= {"input_data": given, "args": given, "input": given, **given}
    names |= job.get("more", {})
    names |= _PREDEFINED
    sys.modules[MODULE] = module
    _import(job.get("libs", ()), names)
    is_given = "result" in names
    try:
        value = _finish(eval(code, names))  # noqa: S307 - running the author's code is this module's purpose
        if returns:
            value = _finish(names[_BODY]())
            if value is not None:
                return value
    except SystemExit as left:
        if left.code not in (None, 0):
            raise
    main = names.get("main")
    if "result" in names and (
        (not is_given and main is None and type(names["result"]) in _PLAIN) or _assigns(source, name)
    ):
        return names["result"]
    if isinstance(main, types.FunctionType) and main.__module__ == MODULE and not returns:
        return _finish(main(**_arguments(main, given, names)))
    return None


def _name(job: Mapping[str, Any]) -> str:
    """Return what tracebacks call the code."""
    return job.get("file") or f"<{job.get('name', 'task')}>"


def _finish(value: Any) -> Any:
    """Wait for what is awaitable: top-level `await`, an async `main`."""
    if not inspect.isawaitable(value):
        return value

    async def waited() -> Any:
        return await value

    import asyncio  # the nursery loads it when it is idle: most code does not need it

    return asyncio.run(waited())


def _import(libs: Any, names: dict[str, Any]) -> None:
    for wanted, given, member in libs:
        module, found = _library(given)
        # A list names the distribution only, so its module is bound under its own name.
        is_listed = wanted == given.partition(".")[0] and module != given
        name = module.partition(".")[0] if is_listed else wanted
        if member:
            found = getattr(found, member)
        elif name == module.partition(".")[0]:
            found = sys.modules[name]  # `import a.b` binds `a`
        names[name] = found


def _library(name: str) -> tuple[str, types.ModuleType]:
    """Return a module and its name; `name` is a module's, or that of a distribution.

    A requirement may have a version and extras: `psycopg2-binary>=2.9`.
    """
    try:
        return name, import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, and lacks another one
        for module in _modules_of(re.split(r"[^\w.-]", name.strip(), maxsplit=1)[0]):
            with suppress(ModuleNotFoundError):
                return module, import_module(module)
        raise


def _modules_of(name: str) -> Iterator[str]:
    """Yield the modules that a distribution may provide, the likely ones first."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, and seldom needed

    plain = re.sub(r"[-_.]+", "_", name).lower()
    named = _DISTRIBUTIONS.get(plain)
    if named is not None:
        yield named
    with suppress(PackageNotFoundError):
        found = distribution(name)
        tops = (found.read_text("top_level.txt") or "").split()
        files = {str(path).partition("/")[0].removesuffix(".py") for path in found.files or () if path.suffix == ".py"}
        yield from sorted({*tops, *files}, key=lambda top: (top.lower() != plain, top.startswith("_"), top))
    yield plain
    yield plain.removesuffix("_binary")


def _arguments(main: Callable[..., Any], given: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `main`: inputs by name, and names of every task."""
    found: dict[str, Any] = {}
    for parameter in inspect.signature(main).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            found = {**given, **found}
        elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            if parameter.name in given:
                found[parameter.name] = given[parameter.name]
            elif parameter.name in names and (parameter.default is parameter.empty or parameter.name in _ALWAYS):
                found[parameter.name] = names[parameter.name]
    return found


@lru_cache(maxsize=256)
def _compiled(source: str, name: str) -> tuple[types.CodeType, bool]:
    """Compile code; also return whether it returns at top level.

    Only such code needs a tree: making and reading one takes twice as long as compiling the text.
    """
    try:
        return _compile(source, name), False
    except SyntaxError:
        tree = ast.parse(source, name)
        if not any(isinstance(node, ast.Return) for node in _level(tree.body)):
            raise
        return _compile(_wrapped(tree), name), True


@lru_cache(maxsize=256)
def _assigns(source: str, name: str) -> bool:
    """Return whether code sets `result` at top level, or as a global."""
    tree = ast.parse(source, name)
    is_set = any(isinstance(node, ast.Name) and node.id == "result" and _is_write(node) for node in _level(tree.body))
    return is_set or any("result" in node.names for node in ast.walk(tree) if isinstance(node, ast.Global))


def _is_write(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _compile(source: str | ast.Module, name: str) -> types.CodeType:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: types.CodeType = compile(source, name, "exec", flags=flags, dont_inherit=True)
    return code


def _level(body: list[ast.stmt]) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _NESTED):
            waiting.extend(ast.iter_child_nodes(node))


class _Plainer(ast.NodeTransformer):
    """Removes annotations: a name that is global in a function must have none."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


def _wrapped(tree: ast.Module) -> ast.Module:
    """Make the code the body of a function whose names are all global."""
    body = [_Plainer().visit(statement) for statement in tree.body]
    future = [node for node in body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    body = [node for node in body if node not in future]
    waits = any(isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) for node in _level(body))

    def module(first: list[ast.stmt]) -> ast.Module:
        made = ast.parse(f"{'async ' * waits}def {_BODY}(): pass")
        made.body[0].body = [*first, *body]  # type: ignore[attr-defined] # it is a function, as the text says
        made.body[:0] = future
        return ast.fix_missing_locations(made)

    trial = _compile(module([]), "<names>")
    function = next(one for one in trial.co_consts if isinstance(one, types.CodeType) and one.co_name == _BODY)
    own = sorted({*function.co_varnames, *function.co_cellvars})
    return module([ast.Global(names=own)]) if own else module([])


def _raised(error: BaseException, job: Mapping[str, Any]) -> dict[str, Any]:
    names = [base.__name__ for base in type(error).__mro__]
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    text = _said(lambda: "".join(traceback.format_exception_only(error)).strip())
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(own)] if own else []
    where = _where(error, own, job)
    if isinstance(error, SyntaxError):
        said, after = f"line {error.lineno}: {error.msg}", ""
    else:
        said = _said(lambda: str(error).strip()) or "no message"
        after = f" (line {where['line']} of {where.get('file', 'the code')})" if where else ""
    if isinstance(error, ModuleNotFoundError):
        after += "; install it where the worker runs"
    kind = next((_KINDS[name] for name in names if name in _KINDS), "python")
    again = ("RetryableError" in names or kind == "timeout") and "FatalError" not in names
    return {
        "kind": kind,
        "code": f"PY_{names[0]}",
        "before": f"{names[0]}: ",
        "said": said,
        "after": after,
        "retryable": again,
        "retry_after": _seconds(getattr(error, "retry_after", None)),
        "details": _plain_map(getattr(error, "details", None)),
        "sent": kind == "timeout",  # how far the code came is unknown
        "class": "SinkError" if "SinkError" in names else "",
        "where": where,
        "exception_type": names[0],
        "traceback": [_cut("".join(lines)), text],
    }


def _where(error: BaseException, own: list[traceback.FrameSummary], job: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the line of the code that failed, and the last frames."""
    name, file = _name(job), {"file": job["file"]} if job.get("file") else {}
    if isinstance(error, SyntaxError) and error.filename == name and error.lineno:
        return {**file, "line": error.lineno, "source": _source(error.text)}
    inside = [frame for frame in own if frame.filename == name and frame.lineno]
    if not inside:
        return None
    frames = [
        {
            **(file if frame.filename == name else {"file": frame.filename}),
            "line": frame.lineno,
            "in": frame.name if frame.name != _BODY else "<module>",
            "source": _source(frame.line),
        }
        for frame in own[-_MOST_FRAMES:]
    ]
    return {**file, "line": inside[-1].lineno, "source": _source(inside[-1].line), "frames": frames}


def _source(line: str | None) -> str:
    return _cut((line or "").strip())


def _said(tell: Callable[[], str]) -> str:
    """Return the limited text of an exception, or of the failure of its own code."""
    try:
        return _cut(tell())
    except Exception as error:  # noqa: BLE001 - foreign code, which may fail in any way
        return f"(its text cannot be read: {type(error).__name__})"


def _cut(text: str) -> str:
    return text[: MOST_TEXT + 1]


def _seconds(given: Any) -> float | None:
    usable = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < _MOST_SECONDS
    return float(given) if usable else None


def _plain_map(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return None
    try:
        return json.loads(_dumps(dict(given), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None


def _json(value: Any) -> bytes:
    try:
        return _encode(value).encode()
    except Exception:  # noqa: BLE001 - the value's own code may run, and fail in any way
        raise _NotJsonError(_said(lambda: _complaint(value, "result", 0) or "the result is not JSON.")) from None


def _complaint(value: Any, path: str, depth: int) -> str | None:
    """Describe the first part of a value that JSON cannot represent."""
    if depth > _MOST_DEPTH:
        return "the result is too deep, or holds itself, so it cannot be JSON."
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str | int | float | bool | None):
                return f"a key of `{path}` is of type {type(key).__name__}, and keys in JSON are text."
            found = _complaint(key, f"a key of {path}", depth) or _complaint(item, f"{path}.{key}", depth + 1)
            if found:
                return found
        return None
    if isinstance(value, list | tuple):
        parts = (_complaint(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value))
        return next((part for part in parts if part), None)
    try:
        _dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return f"`{path}` is text that cannot be written as UTF-8."
    except ValueError:
        if isinstance(value, int):
            return f"`{path}` is a number of too many digits; give it as text."
        return f"`{path}` is {value}, which JSON does not have; give null or text instead."
    except TypeError:
        fix = "use text, numbers, true or false, null, lists and maps, for example str(…) or list(…)."
        return f"`{path}` is of type {type(value).__name__}, which is not JSON; {fix}"
    return None
