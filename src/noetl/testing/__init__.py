"""Test support for playbooks and for NoETL itself."""
