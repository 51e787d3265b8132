"""Python's search for garbage in cycles, which costs a third of the time where very much is read that stays."""
