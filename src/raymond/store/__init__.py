"""What is kept on disk, one kind per file."""
