"""Views of a cluster's state: gauges, health, issues by cause, rows, the migration, and metadata of one moment."""
