"""Drive executions from this process: start, follow, take over, message."""
