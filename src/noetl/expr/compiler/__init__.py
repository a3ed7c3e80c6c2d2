"""NoETL's tree to closures."""
