"""Plays one case: mocks, virtual time, crashing store."""
