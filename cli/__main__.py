"""`python -m cli`, the same as `kontrast`. Nothing else belongs here."""

from cli.start import main

main()
