"""Commands that start, watch and control executions: one file per command."""
