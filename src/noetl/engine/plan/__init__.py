"""Everything that is known of a playbook before it runs, computed once per version."""
