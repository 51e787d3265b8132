"""For workflow authors and backend writers: programs and tools to test with."""
