"""NoETL is an event-sourced workflow engine: playbooks are checked, explained, drawn and run, here or by servers and workers."""

TYPE_CHECKING = False  # the name that type checkers know; `typing` is not loaded for it
if TYPE_CHECKING:
    from noetl.client.api import Client as Client

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Load the client only where somebody asks for it."""
    if name == "Client":
        from noetl.client.api import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
