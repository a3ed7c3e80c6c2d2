"""Shared parts of the stores: judging a batch, rows, named SQL."""
