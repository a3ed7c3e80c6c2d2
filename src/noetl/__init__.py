"""NoETL is an event-sourced workflow engine; this package reads, checks, explains and draws playbooks."""

__version__ = "0.1.0"
