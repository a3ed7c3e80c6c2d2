"""The wire format: bodies of HTTP, and frames of a worker's session.

Unknown fields of a request are refused; unknown fields of an answer are ignored, so that an older client can read a newer
server. Tested in tests/server.
"""
