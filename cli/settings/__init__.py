"""Settings from the TOML file, the environment and the command line."""
