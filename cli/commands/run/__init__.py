"""Commands that keep running: the forwarder, the job, the exporter, and a demonstration of all three."""
