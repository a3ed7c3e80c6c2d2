"""Commands that run servers and workers, and address them: one file per command."""
