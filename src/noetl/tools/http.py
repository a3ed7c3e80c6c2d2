"""Describes the kind `http`: one request and its answer."""

from typing import Annotated, Any, Literal

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import ToolInput, about, describe

Plain = str | int | float | bool


class Input(ToolInput, frozen=True, kw_only=True):
    """One HTTP request."""

    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"], about("The request's verb.")
    ] = "GET"
    url: Annotated[str, about("Where to send it.", "{{ workload.api_url }}/orders", aliases=("endpoint",))]
    params: Annotated[
        dict[str, Any] | None,
        about("Query parameters; a list repeats its name, null leaves it out.", {"page": 1}),
    ] = None
    headers: Annotated[dict[str, Plain] | None, about("Request headers.", {"Accept": "application/json"})] = None
    body: Annotated[
        Any, about("The body: a map or list is sent as JSON, text as it is.", {"id": 7}, aliases=("payload",))
    ] = None
    json: Annotated[Any, about("The body, sent as JSON whatever it is.", {"id": 7})] = None
    data: Annotated[
        Any, about("The body: text as it is, a map as JSON unless the content type says it is a form.", "id=7")
    ] = None
    form: Annotated[
        dict[str, Any] | None,
        about("The body as the fields of a form.", {"grant_type": "password"}),
    ] = None
    verify: Annotated[bool | str, about("Check the server's certificate; a text is a file with trusted ones.")] = True
    follow_redirects: Annotated[bool, about("Go where a redirect points.")] = True


KIND = describe(
    Input,
    name="http",
    summary="Sends one HTTP request and reads the answer.",
    description="""
    Any status outside 200–299 is an error outcome, with the body kept in the result. `auth` names the credential: a token,
    a user with a password, or an API key, put where the credential says. `traceparent` and `Idempotency-Key` are sent along,
    so a server can tell a retry from new work.
    """,
    at_most_one=(("body", "json", "data", "form"),),
    result={
        "status": "The status code; the same as `status_code`.",
        "status_code": "The status code.",
        "headers": "The answer's headers, names in lower case.",
        "url": "The address that answered, after redirects.",
        "elapsed": "Seconds from sending to the whole answer.",
        "data": "The body: parsed when it is JSON, else text.",
        "body": "The same as `data`.",
    },
    helper=(
        "http",
        {"status": "The status code of the answer.", "headers": "The answer's headers, names in lower case."},
    ),
    examples=(
        KindExample(
            "Fetch, and try again when the server is busy",
            """
            - fetch:
                kind: http
                method: GET
                url: "{{ workload.api_url }}/orders"
                params: { since: "{{ workload.since }}" }
                spec:
                  policy:
                    rules:
                      - when: "{{ outcome.status == 'error' and outcome.http.status in [429, 502, 503] }}"
                        then: { do: retry, attempts: 5, backoff: exponential, delay: 2 }
                      - when: "{{ outcome.status == 'error' }}"
                        then: { do: fail }
                      - else:
                          then: { do: continue }
            """,
        ),
        KindExample(
            "Post JSON with a stored credential and keep a part of the answer",
            """
            - name: create_order
              kind: http
              method: POST
              endpoint: "{{ workload.api_url }}/orders"
              auth: orders_api
              json: { customer: "{{ workload.customer_id }}" }
              timeout: 10
              set:
                ctx.order_id: "{{ output.data.data.id }}"
            """,
        ),
    ),
)
