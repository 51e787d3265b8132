"""The state machine of a run: decide, evolve, owed. Pure."""
