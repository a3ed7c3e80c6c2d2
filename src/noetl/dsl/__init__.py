"""The playbook language: parsing, grammar, canonical tree, checks, formatter and drawings; pure."""
