"""Start and end the Spark session and its Java process, and name what failed in it."""
