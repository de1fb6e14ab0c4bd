"""Start of the `kontrast` command, with a Ctrl-C that ends it in order during imports and at its end.

Imports before the handler is set are not protected.
"""

from cli.interrupts import leave_at_ctrl_c


def main() -> None:
    """Run the command and exit."""
    leave_at_ctrl_c()
    from cli.main import main as run

    run(prog_name="kontrast")
