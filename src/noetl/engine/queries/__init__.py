"""Read-only queries on an execution: explain, view, fork, dry run, projection."""
