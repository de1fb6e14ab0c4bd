"""Views of a cluster's state, such as gauges, health, issues by cause, rows, and metadata of one moment."""
