"""The pipeline of one step-run: a pure program counter over its tasks."""
