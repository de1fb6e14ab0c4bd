"""The `kontrast` command: reads configuration and wires the parts.

Everything may be imported here; nobody imports this. What a part does belongs into the part.
"""
