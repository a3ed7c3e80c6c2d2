"""Kind `container`: a program in a container image."""

from typing import Annotated, Literal

import msgspec

from noetl.tools.contract import Shell, ToolInput, about, describe
from noetl.tools.fields import PROCESS_RESULT, Environment

Processors = Annotated[float, msgspec.Meta(ge=0)]


class Input(ToolInput, frozen=True, kw_only=True):
    """Image and how to run it."""

    image: Annotated[str, about("Image, preferably with a tag or digest.", "python:3.12-slim")]
    command: Annotated[
        Shell | list[str] | None,
        about(
            "Command to run instead of the image's entry point: a list, or a string for the image's shell.",
            ["python", "-V"],
        ),
    ] = None
    arguments: Annotated[list[str | int | float] | None, about("Arguments of the command.", ["--fast"])] = None
    env: Environment = None
    cwd: Annotated[str | None, about("Working directory in the container.", "/work", aliases=("workdir",))] = None
    runtime: Annotated[
        Literal["auto", "docker", "podman", "kubernetes"],
        about("Container runtime; `auto` uses what the worker has.", "kubernetes"),
    ] = "auto"
    namespace: Annotated[str | None, about("With `kubernetes`: namespace of the job.", "batch")] = None
    pull: Annotated[Literal["missing", "always", "never"], about("When to pull the image.", "always")] = "missing"
    cpus: Annotated[Processors | None, about("CPU limit.", 0.5)] = None
    memory: Annotated[str | int | None, about("Memory limit: bytes, or a size such as `512Mi`.", "512Mi")] = None


KIND = describe(
    Input,
    name="container",
    summary="Run a program in a container.",
    description="""
    The program receives the task's `input` as JSON on standard input. An exit code other than 0 is an error outcome, with the
    output in the result. Pass untrusted values in `env`, `arguments` or a list, not in a command string. `auth` names the
    credential of the image registry.
    """,
    result=PROCESS_RESULT,
    built=False,
    examples="""
    # A program of an image, with arguments
    - convert:
        kind: container
        image: ffmpeg:7
        command: [ffmpeg, -i, "{{ workload.folder }}/in.mov", out.mp4]
        cpus: 2
        timeout_ms: 600000

    # A job in a cluster
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
)
