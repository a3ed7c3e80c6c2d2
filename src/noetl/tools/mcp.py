"""Describes the kind `mcp`: a tool of a Model Context Protocol server."""

from typing import Annotated, Any

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """Which tool of which server to call."""

    server: Annotated[
        str,
        about("The server: its address, or the name it has in the worker's settings.", "search", aliases=("endpoint",)),
    ]
    tool: Annotated[str, about("The tool's name on that server.", "find_documents")]
    arguments: Annotated[
        dict[str, Any] | None, about("The tool's arguments; without them the task's `input`.", {"text": "invoice"})
    ] = None


KIND = describe(
    Input,
    name="mcp",
    summary="Calls a tool of a Model Context Protocol server.",
    description="""
    The server checks the arguments against the tool's own schema; an answer that it marks as an error is an error outcome.
    `auth` names the credential of the server.
    """,
    result={
        "content": "The parts of the answer, as the server sent them.",
        "text": "The text parts, joined.",
        "data": "The structured answer; without one, the text parsed as JSON, or null.",
    },
    examples=(
        KindExample(
            "Ask a server that the worker knows",
            """
            - search:
                kind: mcp
                server: search
                tool: find_documents
                arguments: { text: "{{ workload.customer_id }}", limit: 5 }
            """,
        ),
        KindExample(
            "Ask a server by its address",
            """
            - name: forecast
              kind: mcp
              server: "{{ workload.api_url }}/mcp"
              tool: forecast
              auth: weather_api
              input:
                city: "{{ workload.city }}"
              set:
                ctx.forecast: "{{ output.data.text }}"
            """,
        ),
    ),
)
