"""Which mode each Kafka node is in, and what the quorum says of itself."""
