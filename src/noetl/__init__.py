"""NoETL: an event-sourced workflow engine."""

TYPE_CHECKING = False  # type checkers know the name; avoids importing `typing`
if TYPE_CHECKING:
    from noetl.client.api import Client as Client
    from noetl.client.sync import SyncClient as SyncClient
    from noetl.errors import CancelError as CancelError
    from noetl.errors import FatalError as FatalError
    from noetl.errors import RetryableError as RetryableError
    from noetl.errors import SinkError as SinkError
    from noetl.errors import TimeoutError as TimeoutError

__version__ = "0.1.0"
_ERRORS = ("RetryableError", "FatalError", "SinkError", "CancelError", "TimeoutError")


def __dir__() -> list[str]:
    """Return what this module exports."""
    return sorted(("Client", "SyncClient", *_ERRORS, "__version__"))


def __getattr__(name: str) -> object:
    """Import the clients and the task errors on first use."""
    if name == "Client":
        from noetl.client.api import Client

        return Client
    if name == "SyncClient":
        from noetl.client.sync import SyncClient

        return SyncClient
    if name in _ERRORS:
        from noetl import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
