"""The error of a setting that cannot be used."""


class ConfigError(Exception):
    """An unusable setting, in one sentence with its name, place and the next step."""
