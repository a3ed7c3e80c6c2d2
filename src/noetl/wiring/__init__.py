"""Composition root: settings to concrete stores, tools, servers and workers."""
