"""Follower of the job's outputs in a thread, with counts of its reading."""
