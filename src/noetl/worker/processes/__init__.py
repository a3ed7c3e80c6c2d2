"""Child processes for `python` and `shell` tasks, and their sandbox."""
