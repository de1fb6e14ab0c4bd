"""The `kontrast` command, which reads the configuration and connects the parts. No part imports it."""
