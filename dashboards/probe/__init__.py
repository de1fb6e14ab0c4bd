"""The brokers' view: what each live broker tells clients of the metadata, compared with what ZooKeeper says.

Here belong asking brokers, read-only and seldom, and judging what they answer. What ZooKeeper says comes from the
exporter's view; telling people is the business of `alerting/` and the metric catalogue.
"""
