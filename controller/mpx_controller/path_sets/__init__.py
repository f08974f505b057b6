"""Path sets: which paths, how many streams on each, and who has them for how long."""
