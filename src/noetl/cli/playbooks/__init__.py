"""Playbook files on their way into a catalog: find, check, prepare, upload."""
