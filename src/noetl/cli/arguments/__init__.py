"""Command-line arguments: shared options, sub-commands, completion, files and payloads."""
