"""What the job's outputs say now: read in a thread of its own, kept as the newest row of each subject."""
