"""Events of a cluster in order with their changes, and a picture of them over time."""
