"""Read-only questions about an execution: explain, views, forks, dry runs, projections."""
