"""The subcommands of `kontrast`, a file each."""
