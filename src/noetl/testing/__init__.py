"""What tests of playbooks and of NoETL itself are made of."""
