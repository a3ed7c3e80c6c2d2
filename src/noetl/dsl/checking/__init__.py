"""Building blocks of rules: checked document, shape findings, types."""
