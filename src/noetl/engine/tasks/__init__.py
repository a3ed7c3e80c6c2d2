"""What a task sees and asks for: its scope, inputs, policy, retries and writes."""
