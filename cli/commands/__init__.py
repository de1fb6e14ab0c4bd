"""The subcommands of `kontrast`, a file each, in the sections of its help page."""
