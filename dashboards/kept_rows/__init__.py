"""Current state from the job's outputs, read in a thread and kept as the newest row of each subject."""
