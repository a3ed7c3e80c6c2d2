"""Clients of a server: `Client` for programs and the command line, a session for workers. Tested in tests/client/."""
