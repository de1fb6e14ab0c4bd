"""What happened in a cluster, in order: its events with what they changed, and a picture of them over time."""
