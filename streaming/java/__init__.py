"""Find Java, fetch the jars that pyspark lacks, and use archives of loaded classes."""
