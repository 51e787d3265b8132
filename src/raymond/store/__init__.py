"""What is kept on disk; one module for each kind of file."""
