"""The playbook language: reading, the canonical tree, checking, the net and drawing; pure, tested in tests/unit/dsl."""
