"""Follower of the job's outputs in a thread, counts of its reading, and the newest transitions."""
