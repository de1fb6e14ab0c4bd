"""Carry records to `controller.step` inside Spark, and its effects to the sinks."""
