"""Clients of a server: `Client` and a worker's session. Tested in tests/client/."""
