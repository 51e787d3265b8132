"""What follows from what happened: decide, evolve, owed. Pure."""
