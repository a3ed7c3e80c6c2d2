"""Credentials, access tokens, signed requests and redaction."""
