"""The state of an execution, and the functions that fold events into it."""
