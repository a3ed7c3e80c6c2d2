"""Credentials, OAuth2 access tokens and redaction."""
