"""API nouns about executions."""
