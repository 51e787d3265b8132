"""Everything one can ask of runs, whatever the face."""
