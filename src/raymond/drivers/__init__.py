"""What drives a run: takes what comes in, writes what was decided, starts what follows."""
