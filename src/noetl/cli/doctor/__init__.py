"""Checks of `noetl doctor`: this machine, its store, and a server."""
