"""Bodies about triggers: what starts playbooks, and notifications."""
