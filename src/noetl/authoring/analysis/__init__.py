"""A playbook as the editor's features see it."""
