"""Child processes for `python` and `shell` tasks, and the sandbox of tasks."""
