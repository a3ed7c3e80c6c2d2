"""Command-line arguments: options, sub-commands, completion, files, payloads."""
