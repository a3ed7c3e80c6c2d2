"""Read a playbook's text, YAML or JSON, into nodes that know their position."""
