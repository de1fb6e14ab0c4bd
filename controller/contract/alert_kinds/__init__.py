"""Kinds of alerts: name, severity, meaning, action and patience of each, a file a subject."""
