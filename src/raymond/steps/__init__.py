"""One step on this machine while it runs: a script, a turn of a backend."""
