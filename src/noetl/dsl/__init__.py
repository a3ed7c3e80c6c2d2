"""The playbook language: parsing, grammar, checks, formatter and drawings; pure."""
