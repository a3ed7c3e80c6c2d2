"""Kind `script`: a program stored outside the playbook, fetched and run."""

import shlex
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec

from noetl.dsl.grammar.kinds import Need
from noetl.model.outcome import Outcome, failed
from noetl.ports import ToolContext
from noetl.tools.contract import ToolInput, about, describe
from noetl.tools.fields import (
    PROCESS_RESULT,
    Environment,
    Script,
    ScriptSource,
    UnreadableError,
    run_process,
    script_text,
)


class Input(ToolInput, frozen=True, kw_only=True):
    """Script and how to run it."""

    uri: Annotated[str | None, about("File path or URL of the script.", "./tidy.sh")] = None
    source: Annotated[
        ScriptSource | None, about("How to fetch it; by default derived from `uri`.", {"type": "file"})
    ] = None
    script: Annotated[Script | None, about("Both `uri` and `source`, as in other kinds.", {"uri": "./tidy.sh"})] = None
    interpreter: Annotated[
        str | list[str] | None,
        about("Interpreter; by default derived from the first line or the file extension.", "bash"),
    ] = None
    arguments: Annotated[list[str | int | float] | None, about("Arguments of the script.", ["--fast"])] = None
    env: Environment = None
    cwd: Annotated[str | None, about("Working directory; by default the folder of relative paths.", "/srv/data")] = None


KIND = describe(
    Input,
    name="script",
    summary="Fetch a script and run it in a child process.",
    description="""
    The script is read from a file, a web server or an object store; its SHA-256 hash is logged. The script receives the
    task's `input` as JSON on standard input. An exit code other than 0 is an error outcome. Printed lines are logged.
    """,
    one_of=(("uri", "script"),),
    needs=(Need("source", ("uri",)),),
    result=PROCESS_RESULT,
    examples="""
    # A script beside the playbook
    - tidy:
        kind: script
        uri: ./tidy.sh
        interpreter: bash
        arguments: ["{{ workload.folder }}"]

    # A script from a bucket
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
)


_BY_ENDING = {".sh": ["sh"], ".bash": ["bash"], ".py": ["python3"], ".js": ["node"], ".rb": ["ruby"], ".pl": ["perl"]}


async def run(input: Input, context: ToolContext) -> Outcome:
    script = input.script or Script(uri=input.uri, source=input.source)
    try:
        text = await script_text(script, context)
    except UnreadableError as error:
        return error.outcome
    context.log(f"script {script.uri or 'inline'} sha256:{sha256(text.encode()).hexdigest()}")
    interpreter = [input.interpreter] if isinstance(input.interpreter, str) else input.interpreter
    interpreter = interpreter or _interpreter(text, script.uri or "")
    if not interpreter:
        return failed("client_error", "cannot derive the interpreter of the script; set `interpreter`.")
    with TemporaryDirectory(prefix="noetl-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, Path(script.uri or "script").name or "script")
        path.write_text(text, encoding="utf-8")
        argv = [*interpreter, str(path), *map(str, input.arguments or ())]
        return await run_process(argv, input.env, input.cwd, context, msgspec.json.encode(dict(context.own)))


def _interpreter(text: str, uri: str) -> list[str]:
    first = text.partition("\n")[0]
    return shlex.split(first[2:]) if first.startswith("#!") else _BY_ENDING.get(Path(uri).suffix, [])
