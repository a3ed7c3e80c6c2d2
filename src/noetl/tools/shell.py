"""Kind `shell`: commands in a child process of the worker."""

from typing import Annotated

from noetl.model.outcome import Outcome, failed
from noetl.ports import ToolContext
from noetl.tools.contract import Shell, ToolInput, about, describe
from noetl.tools.fields import PROCESS_RESULT, Environment, run_process


class Input(ToolInput, frozen=True, kw_only=True):
    """Commands to run."""

    command: Annotated[
        Shell | list[str] | None,
        about("Command line for the shell, or a list of a program and its arguments, run without a shell.", "ls -l"),
    ] = None
    cmds: Annotated[
        Shell | list[Shell] | None,
        about("Command lines, run in order until one fails.", ["mkdir -p out", "date > out/stamp"]),
    ] = None
    env: Environment = None
    cwd: Annotated[str | None, about("Working directory; by default the folder of relative paths.", "/srv/data")] = None


KIND = describe(
    Input,
    name="shell",
    summary="Run commands in a child process.",
    description="""
    Commands run in the folder of the playbook's relative paths: with `noetl run`, the current one. An exit code other than 0 is
    an error outcome, with the output in the result. Printed lines are logged too. Pass untrusted values in `env` or in a list of arguments, not in a command
    line: the shell would execute them as code.
    """,
    one_of=(("command", "cmds"),),
    result=PROCESS_RESULT,
    examples="""
    # A program with its arguments, without a shell
    - pack:
        kind: shell
        command: [tar, -czf, out.tgz, "{{ workload.folder }}"]
        timeout_ms: 60000

    # Several commands, with a value in the environment
    - name: report
      kind: shell
      cmds:
        - mkdir -p out
        - echo "orders since $SINCE" > out/report.txt
        - cat out/report.txt
      env: { SINCE: "{{ workload.since }}" }
      set:
        ctx.report: "{{ output.data.stdout }}"
    """,
)


async def run(input: Input, context: ToolContext) -> Outcome:
    if not input.command and not input.cmds:
        return failed("client_error", "nothing to run: the command is empty", code="COMMAND")
    if isinstance(input.command, list):
        argv = input.command
    else:
        lines = input.cmds if isinstance(input.cmds, list) else [input.cmds or input.command or ""]
        argv = ["/bin/sh", "-c", "\n".join(["set -e", *lines]) if input.cmds else lines[0]]
    return await run_process(argv, input.env, input.cwd, context)
