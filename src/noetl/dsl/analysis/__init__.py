"""What a playbook means before it runs: templates, scopes, references, the net and its flow."""
