"""API nouns about playbooks."""
