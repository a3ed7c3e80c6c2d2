"""NoETL is an event-sourced workflow engine: playbooks are checked, explained, drawn and run, here or by servers and workers."""

TYPE_CHECKING = False  # the name that type checkers know; `typing` is not loaded for it
if TYPE_CHECKING:
    from noetl.client.api import Client as Client
    from noetl.errors import CancelError as CancelError
    from noetl.errors import FatalError as FatalError
    from noetl.errors import RetryableError as RetryableError
    from noetl.errors import SinkError as SinkError
    from noetl.errors import TimeoutError as TimeoutError

__version__ = "0.1.0"
_ERRORS = ("RetryableError", "FatalError", "SinkError", "CancelError", "TimeoutError")


def __getattr__(name: str) -> object:
    """Load the client, or the errors that tasks may raise, only where somebody asks for them."""
    if name == "Client":
        from noetl.client.api import Client

        return Client
    if name in _ERRORS:
        from noetl import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
