"""Export of the event log to other systems, one module per target."""
