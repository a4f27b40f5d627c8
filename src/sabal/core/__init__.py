"""Arrays and their backends, checks, lazy rows, memory, seeds and files."""
