"""What speaks to a server: `Client` for people's programs and the command line, a session for workers.

Knows the routes and frames of `wire`, and nothing of how a server answers them. Tested in tests/client/.
"""
