"""The live page, which shows the exporter's knowledge to people and as JSON. It only reads."""
