"""The live page: what the exporter knows, answered to people and as JSON; it only reads."""
