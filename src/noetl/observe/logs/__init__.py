"""Log lines of servers and workers: one table of events, one formatter."""
