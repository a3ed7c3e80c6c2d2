"""Describes the kind `python`: code in a child process, inputs as variables, a JSON result."""

from typing import Annotated

import msgspec

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import Python, ToolInput, about, describe
from noetl.tools.fields import Script


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
    or `FatalError` to say whether another attempt makes sense. What the code prints becomes log lines.
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
