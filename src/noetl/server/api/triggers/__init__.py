"""API nouns of triggers: what starts playbooks, and notifications."""
