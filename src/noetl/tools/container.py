"""Describes the kind `container`: a program in an image."""

from typing import Annotated, Literal

import msgspec

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import Shell, ToolInput, about, describe
from noetl.tools.fields import PROCESS_RESULT, Environment

Processors = Annotated[float, msgspec.Meta(ge=0)]


class Input(ToolInput, frozen=True, kw_only=True):
    """An image and how to run it."""

    image: Annotated[str, about("The image, best with a tag or digest.", "python:3.12-slim")]
    command: Annotated[
        Shell | list[str] | None,
        about(
            "What to run instead of the image's own program: a list, or a text for the image's shell.", ["python", "-V"]
        ),
    ] = None
    arguments: Annotated[list[str | int | float] | None, about("Arguments behind the command.", ["--fast"])] = None
    env: Environment = None
    cwd: Annotated[str | None, about("The folder inside to run in.", "/work", aliases=("workdir",))] = None
    runtime: Annotated[
        Literal["auto", "docker", "podman", "kubernetes"],
        about("What runs it; `auto` takes what the worker has.", "kubernetes"),
    ] = "auto"
    namespace: Annotated[str | None, about("With `kubernetes`: the namespace of the job.", "batch")] = None
    pull: Annotated[Literal["missing", "always", "never"], about("When to fetch the image.", "always")] = "missing"
    cpus: Annotated[Processors | None, about("How many processors it may use.", 0.5)] = None
    memory: Annotated[
        str | int | None, about("How much memory it may use: bytes, or a text such as `512Mi`.", "512Mi")
    ] = None


KIND = describe(
    Input,
    name="container",
    summary="Runs a program in a container.",
    description="""
    The task's `input` reaches the program as JSON on standard input. An exit code other than 0 is an error outcome, with the
    output kept in the result. Values from outside belong in `env`, `arguments` or a list, not in the text of a command. `auth`
    names the credential of the image's registry.
    """,
    result=PROCESS_RESULT,
    examples=(
        KindExample(
            "A program of an image, with arguments",
            """
            - convert:
                kind: container
                image: ffmpeg:7
                command: [ffmpeg, -i, "{{ workload.folder }}/in.mov", out.mp4]
                cpus: 2
                timeout_ms: 600000
            """,
        ),
        KindExample(
            "A job in a cluster",
            """
            - name: train
              kind: container
              image: trainer:1.4
              runtime: kubernetes
              namespace: batch
              memory: 4Gi
              env: { SINCE: "{{ workload.since }}" }
              set:
                ctx.report: "{{ output.data.stdout }}"
            """,
        ),
    ),
)
