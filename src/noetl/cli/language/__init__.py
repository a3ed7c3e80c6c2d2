"""Commands for authors of playbooks, editors and shells: one file per command."""
