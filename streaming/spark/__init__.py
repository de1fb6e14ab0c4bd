"""Start and end the Spark session and its Java process, and name their failures."""
