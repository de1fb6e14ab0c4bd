"""`python -m cli`, the same as `kontrast`. Nothing else belongs here."""

from cli.main import main

main(prog_name="kontrast")
