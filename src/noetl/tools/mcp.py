"""Kind `mcp`: a tool of a Model Context Protocol server."""

from typing import Annotated, Any

from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """Tool to call, and its server."""

    server: Annotated[
        str, about("Server: its URL, or its name in the worker's settings.", "search", aliases=("endpoint",))
    ]
    tool: Annotated[str, about("Name of the tool.", "find_documents")]
    arguments: Annotated[
        dict[str, Any] | None, about("Arguments of the tool; by default the task's `input`.", {"text": "invoice"})
    ] = None


KIND = describe(
    Input,
    name="mcp",
    summary="Call a tool of a Model Context Protocol server.",
    description="""
    The server validates the arguments against the tool's schema; a response that it marks as an error is an error outcome.
    `auth` names the credential of the server.
    """,
    result={
        "content": "Parts of the response, as sent by the server.",
        "text": "The text parts, joined.",
        "data": "Structured response; without one, the text parsed as JSON, or null.",
    },
    built=False,
    examples="""
    # Call a server from the worker's settings
    - search:
        kind: mcp
        server: search
        tool: find_documents
        arguments: { text: "{{ workload.customer_id }}", limit: 5 }

    # Call a server by its URL
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
)
