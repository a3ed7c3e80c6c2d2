"""Static analysis of a playbook: templates, scopes, references, net and flow."""
