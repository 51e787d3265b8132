"""Readers and writers of session logs, records and state files: text in, values and text out. Pure."""
