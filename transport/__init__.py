"""The stream between the parts: its address, and the journal, its embedded form.

Here belongs what `ingest/`, `streaming/` and `dashboards/` must agree on to hand bytes to each other. Not here: what
the bytes mean (`controller.records`, `controller.outputs`), nor Kafka clients: each part uses its own.
"""
