"""Describes the kind `secrets`: a secret read from where it is kept."""

from typing import Annotated, Literal

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """Which secret to read, and where."""

    provider: Annotated[
        Literal["stored", "env", "google", "gcp", "aws", "azure", "vault"],
        about(
            "Where it is kept: NoETL's own store, the worker's environment, or a secret manager (`gcp` is `google`)."
        ),
    ] = "stored"
    secret: Annotated[str, about("Its name there.", "orders-api-token", aliases=("secret_name",))]
    version: Annotated[str | int | float | None, about("Which version; by default the latest.", 3)] = None
    field: Annotated[str | None, about("The key to take when the secret is a JSON map.", "password")] = None
    project: Annotated[
        str | None, about("With `google`: the project it belongs to.", "acme-prod", aliases=("project_id",))
    ] = None
    region: Annotated[str | None, about("With `aws`: the region.", "eu-central-1")] = None
    url: Annotated[str | None, about("With `vault` and `azure`: the address of the vault.")] = None


KIND = describe(
    Input,
    name="secrets",
    summary="Reads a secret for the tasks behind it in the same pipeline.",
    description="""
    The value never leaves the worker: events, logs and results show it masked, and writing it to `ctx` is refused. Prefer `auth`
    on the task that needs the secret; use this kind where a tool has no place for a credential. `auth` here names what may
    ask the secret manager.
    """,
    result={
        "value": "The secret, for later tasks of this pipeline; masked everywhere else.",
        "version": "The version that was read.",
        "provider": "Where it was read.",
        "secret": "Its name there.",
    },
    examples=(
        KindExample(
            "Read from the store of NoETL",
            """
            - token:
                kind: secrets
                secret: orders-api-token
            """,
        ),
        KindExample(
            "Read one key of a secret kept in a secret manager",
            """
            - name: db_password
              kind: secrets
              provider: google
              project: acme-prod
              secret: orders-db
              field: password
              auth: gcs_reader
            """,
        ),
    ),
)
