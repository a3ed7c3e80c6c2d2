"""The kind `python`: code in a child process, inputs as variables, a JSON result."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec

from noetl.dsl.kinds import KindExample
from noetl.model.outcome import Outcome, failed
from noetl.ports import Job, ToolContext
from noetl.tools.contract import Python, ToolInput, about, describe
from noetl.tools.fields import Script, UnreadableError, script_text


class Library(ToolInput, frozen=True, kw_only=True):
    """One name taken out of a module."""

    module: Annotated[str, about("The module.", "datetime", rendered="")] = msgspec.field(name="from")
    names: Annotated[str | list[str], about("The name or names to take.", "timedelta", rendered="")] = msgspec.field(
        name="import"
    )


class Input(ToolInput, frozen=True, kw_only=True):
    """Python code to run."""

    code: Annotated[
        Python | None,
        about("The code. It is no template: values come in through `input`.", "result = len(rows)", rendered=""),
    ] = None
    code_b64: Annotated[str | None, about("The code, encoded as base64.", "cmVzdWx0ID0gMQ==", rendered="")] = None
    script: Annotated[Script | None, about("Code kept outside the playbook.", {"uri": "./clean.py"})] = None
    libs: Annotated[
        dict[str, str | Library] | list[str] | None,
        about(
            "Modules to import: a list, or a map from the name in the code to the module.", {"np": "numpy"}, rendered=""
        ),
    ] = None


KIND = describe(
    Input,
    name="python",
    summary="Runs Python code in a child process.",
    description="""
    Each key of `input` is a variable of the code; `input_data` and `args` hold all of them, `context` holds what templates
    see. The result is what the code assigns to `result`, or returns at the top level, or what its `main(...)` returns (it may
    be async); without any of these it is null, and one that is not JSON is an error of kind `schema`. Raise `RetryableError`
    (with `retry_after=SECONDS` if you like) or `FatalError` to say whether another attempt makes sense, `SinkError`,
    `CancelError` or `TimeoutError` to say what went wrong; modules of your own import them from `noetl`. What the code prints
    becomes log lines. Threads and processes that it leaves behind are ended.
    """,
    one_of=(("code", "code_b64", "script"),),
    result=None,
    helper=(
        "py",
        {
            "exception_type": "The class of the exception, such as `ValueError`.",
            "traceback": "Where it was raised, as text.",
        },
    ),
    examples=(
        KindExample(
            "Work on what the step was given",
            """
            - total:
                kind: python
                args: { orders: "{{ workload.orders }}" }
                code: |
                  result = {"total": sum(order["amount"] for order in orders)}
            """,
        ),
        KindExample(
            "A function, a library and a value for the next steps",
            """
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
            """,
        ),
        KindExample(
            "Code kept in a file",
            """
            - name: clean
              kind: python
              script:
                uri: ./clean.py
                source: { type: file }
              input:
                rows: "{{ workload.orders }}"
            """,
        ),
    ),
)


async def run(input: Input, context: ToolContext) -> Outcome:
    try:
        code = await _code(input, context)
    except UnreadableError as error:
        return error.outcome
    except (binascii.Error, UnicodeDecodeError) as error:
        return failed("parse", f"`code_b64` is not text in base64: {error}")
    variables = _variables(context)
    if isinstance(context.auth, Mapping):
        variables["auth"] = dict(context.auth)
    elif isinstance(context.auth, str):
        try:
            variables["auth"] = dict(await context.credential(context.auth))
        except KeyError:
            return failed("auth", f"there is no credential `{context.auth}`; store it, or take `auth` off the task.")
    given = dict(context.input)
    job = Job(code, context.task, variables, given, tuple(_libs(input.libs)))
    return await context.children.python(context.execution_id, job, context.log)


async def _code(input: Input, context: ToolContext) -> str:
    if input.code_b64 is not None:
        return base64.b64decode(input.code_b64, validate=False).decode()
    return await script_text(input.script, context) if input.script is not None else input.code or ""


def _variables(context: ToolContext) -> dict[str, Any]:
    """Give the names of the code: what every task has, the names of the loop, the inputs; later ones win."""
    given = dict(context.input)
    iteration = context.names.get("iter") or {}
    own = {name: value for name, value in iteration.items() if name.isidentifier() and name not in _ITERATION}
    every = {"execution_id": context.execution_id, "input_data": given, "args": given, "input": given}
    return {**own, **every, "context": dict(context.names), **given}


_ITERATION = {"index", "total", "first", "last", "parent", "_index", "_total", "_first", "_last"}


def _libs(libs: dict[str, str | Library] | list[str] | None) -> Iterator[tuple[str, str, str]]:
    """Give what to import as (name in the code, module, name in the module)."""
    for name, library in libs.items() if isinstance(libs, dict) else ():
        if isinstance(library, str):
            yield name, library, ""
        elif isinstance(library.names, str):
            yield name, library.module, library.names
        else:
            yield from ((member, library.module, member) for member in library.names)
    for module in libs if isinstance(libs, list) else ():
        yield module.partition(".")[0], module, ""
