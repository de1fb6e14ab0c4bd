"""Entry point of `python -m cli`, the same as `kontrast`."""

from cli.start import main

main()
