"""Kinds of alerts, each with its name, severity, meaning, action and patience, in one file for each subject."""
