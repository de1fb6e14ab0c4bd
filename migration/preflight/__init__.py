"""Obstacles to a migration in a cluster's znodes: a table of checks, each a pure function of a tree."""
