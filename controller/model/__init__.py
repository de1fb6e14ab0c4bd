"""What is known of one cluster, and how a step may change it."""
