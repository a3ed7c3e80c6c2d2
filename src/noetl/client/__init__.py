"""Clients of a server, and a worker's session. Tested in tests/client/."""
