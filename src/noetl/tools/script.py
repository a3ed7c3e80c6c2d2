"""Describes the kind `script`: a program text kept outside the playbook, fetched and run."""

from typing import Annotated

from noetl.dsl.kinds import KindExample, Need
from noetl.tools.contract import ToolInput, about, describe
from noetl.tools.fields import PROCESS_RESULT, Environment, Script, ScriptSource


class Input(ToolInput, frozen=True, kw_only=True):
    """A script and how to run it."""

    uri: Annotated[
        str | None, about("The script's address: a file's path, or where the source keeps it.", "./tidy.sh")
    ] = None
    source: Annotated[ScriptSource | None, about("How to fetch it; without it the address tells.", {"type": "gcs"})] = (
        None
    )
    script: Annotated[Script | None, about("Address and source together, as in other kinds.", {"uri": "./tidy.sh"})] = (
        None
    )
    interpreter: Annotated[
        str | list[str] | None,
        about("The program that reads it; by default its first line or the end of its name tells.", "bash"),
    ] = None
    arguments: Annotated[list[str | int | float] | None, about("Arguments of the script.", ["--fast"])] = None
    env: Environment = None
    cwd: Annotated[str | None, about("The folder to run in; by default an empty one of its own.", "/srv/data")] = None


KIND = describe(
    Input,
    name="script",
    summary="Fetches a script and runs it in a child process.",
    description="""
    The script comes from a file, a web server or an object store; its bytes are recorded by their hash, so a run can be
    explained later. The task's `input` reaches it as JSON on standard input. An exit code other than 0 is an error outcome.
    """,
    one_of=(("uri", "script"),),
    needs=(Need("source", ("uri",)),),
    result=PROCESS_RESULT,
    examples=(
        KindExample(
            "A script beside the playbook",
            """
            - tidy:
                kind: script
                uri: ./tidy.sh
                interpreter: bash
                arguments: ["{{ workload.folder }}"]
            """,
        ),
        KindExample(
            "A script from a bucket",
            """
            - name: train
              kind: script
              script:
                uri: gs://scripts/train.py
                source: { type: gcs, auth: gcs_reader }
              interpreter: python3
              input:
                folder: "{{ workload.folder }}"
              set:
                ctx.report: "{{ output.data.stdout }}"
            """,
        ),
    ),
)
