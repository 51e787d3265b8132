"""The operating system: files, processes, programs, polling."""
