"""The commands that stay: the forwarder, the job, the exporter, and a demonstration of all three."""
