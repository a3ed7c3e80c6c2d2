"""What rules are made of: the checked document, shape findings, rule and finding types."""
