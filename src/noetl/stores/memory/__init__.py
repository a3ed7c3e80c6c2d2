"""The store in memory, for tests."""
