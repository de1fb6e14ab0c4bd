"""The error of a setting that cannot be used."""


class ConfigError(Exception):
    """A setting that cannot be used: one sentence that names it, its place, and what to do."""
