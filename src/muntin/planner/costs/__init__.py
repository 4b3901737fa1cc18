"""What a plan costs, in operations and in seconds."""
