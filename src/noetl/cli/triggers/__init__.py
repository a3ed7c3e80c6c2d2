"""Commands of triggers: what starts playbooks on a server, and notifications."""
