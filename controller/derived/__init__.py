"""What follows from the model: health, gauges, issues of partitions, rows, stored bytes."""
