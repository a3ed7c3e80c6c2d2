"""Kind `python`: code in a child process, inputs as variables, a JSON result."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from noetl.model.outcome import Outcome, failed
from noetl.ports import Job, ToolContext
from noetl.tools.contract import Python, ToolInput, about, describe
from noetl.tools.fields import Script, UnreadableError, script_text


class Library(ToolInput, frozen=True, kw_only=True):
    """Names imported from a module."""

    module: Annotated[str, about("Module.", "datetime", rendered="")] = msgspec.field(name="from")
    names: Annotated[str | list[str], about("Name or names to import.", "timedelta", rendered="")] = msgspec.field(
        name="import"
    )


class Input(ToolInput, frozen=True, kw_only=True):
    """Python code to run."""

    code: Annotated[
        Python | None,
        about("Code. It is not a template: pass values through `input`.", "result = len(rows)", rendered=""),
    ] = None
    code_b64: Annotated[str | None, about("Code, encoded in Base64.", "cmVzdWx0ID0gMQ==", rendered="")] = None
    script: Annotated[Script | None, about("Code stored outside the playbook.", {"uri": "./clean.py"})] = None
    libs: Annotated[
        dict[str, str | Library] | list[str] | None,
        about("Modules to import: a list, or a map from name in the code to module.", {"np": "numpy"}, rendered=""),
    ] = None


KIND = describe(
    Input,
    name="python",
    summary="Run Python code in a child process.",
    description="""
    Each key of `input` is a variable; `input_data` and `args` are maps of all of them, `context` is the scope of templates.
    The result is the variable `result`, the value of a top-level `return`, or the return value of `main(...)` (which may be
    async); without any of these it is null. A result that is not JSON is an error of kind `schema`. Raise `RetryableError`
    (optionally with `retry_after=SECONDS`) or `FatalError` to control retries, `SinkError`, `CancelError` or `TimeoutError` to
    classify the error; your own modules import them from `noetl`. Printed lines are logged. Threads and processes left running
    are terminated.
    """,
    one_of=(("code", "code_b64", "script"),),
    result=None,
    helper=(
        "py",
        {"exception_type": "Class of the exception, such as `ValueError`.", "traceback": "Traceback, as text."},
    ),
    examples="""
    # Compute from the step's arguments
    - total:
        kind: python
        args: { orders: "{{ workload.orders }}" }
        code: |
          result = {"total": sum(order["amount"] for order in orders)}

    # A function, a library and a value for the next steps
    - name: deadline
      kind: python
      libs:
        dt: datetime
        timedelta: { from: datetime, import: timedelta }
      input:
        since: "{{ workload.since }}"
      code: |
        def main(since):
            return {"due": (dt.date.fromisoformat(since) + timedelta(days=30)).isoformat()}
      set:
        ctx.due: "{{ output.data.due }}"

    # Code in a file
    - name: clean
      kind: python
      script:
        uri: ./clean.py
        source: { type: file }
      input:
        rows: "{{ workload.orders }}"
    """,
)


async def run(input: Input, context: ToolContext) -> Outcome:
    try:
        code = await _code(input, context)
    except UnreadableError as error:
        return error.outcome
    except (binascii.Error, UnicodeDecodeError) as error:
        return failed("parse", f"`code_b64` is not Base64-encoded text: {error}")
    more: dict[str, Any] = {}
    if isinstance(context.auth, Mapping):
        more["auth"] = dict(context.auth)
    elif isinstance(context.auth, str):
        try:
            more["auth"] = dict(await context.credential(context.auth))
        except KeyError:
            return failed("auth", f"unknown credential `{context.auth}`; create it, or remove `auth` from the task.")
    file = input.script.uri or "" if input.script is not None else ""
    variables = _variables(context, has_scope=_reads_scope(code))
    job = Job(code, context.task, variables, dict(context.input), tuple(_libs(input.libs)), file, more)
    return await context.children.python(context.execution_id, job, context.log, context.masked)


async def _code(input: Input, context: ToolContext) -> str:
    if input.code_b64 is not None:
        return base64.b64decode(input.code_b64, validate=False).decode()
    return await script_text(input.script, context) if input.script is not None else input.code or ""


def _variables(context: ToolContext, *, has_scope: bool) -> dict[str, Any]:
    """Return the variables besides the inputs: of the loop, and of every task."""
    iteration = context.names.get("iter") or {}
    own = {name: value for name, value in iteration.items() if name.isidentifier() and name not in _ITERATION}
    own["execution_id"] = context.execution_id
    return {**own, "context": dict(context.names)} if has_scope else own


@lru_cache(maxsize=1024)
def _reads_scope(code: str) -> bool:
    """Return whether code may read `context`: by its name, or by looking at all names."""
    return _SCOPE.search(code) is not None


_SCOPE = re.compile(
    r"\b(context|globals|locals|vars|dir|eval|exec|_getframe|currentframe|inspect|modules|__dict__|noetl_task)\b"
)
_ITERATION = {"index", "total", "first", "last", "parent", "_index", "_total", "_first", "_last"}


def _libs(libs: dict[str, str | Library] | list[str] | None) -> Iterator[tuple[str, str, str]]:
    """Yield imports as (name in the code, module, name in the module)."""
    for name, library in libs.items() if isinstance(libs, dict) else ():
        if isinstance(library, str):
            yield name, library, ""
        elif isinstance(library.names, str):
            yield name, library.module, library.names
        else:
            yield from ((member, library.module, member) for member in library.names)
    for module in libs if isinstance(libs, list) else ():
        yield module.partition(".")[0], module, ""
