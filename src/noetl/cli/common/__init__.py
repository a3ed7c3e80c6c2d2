"""Shared by all commands: options, settings, store, server, errors, completion."""
