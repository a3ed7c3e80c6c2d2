"""API tokens, roles, and the sealed credential store."""
