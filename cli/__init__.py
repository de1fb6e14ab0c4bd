"""The `kontrast` command, which reads the configuration and connects the parts; no part imports it."""
