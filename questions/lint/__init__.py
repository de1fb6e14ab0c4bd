"""Znodes that will cause trouble."""
