"""Start of the `kontrast` command, which Ctrl-C ends without a traceback, even during imports and at the end.

This module's own imports run before the handler is set, so they are not protected.
"""

from cli.interrupts import leave_at_ctrl_c


def main() -> None:
    """Run the command and exit."""
    leave_at_ctrl_c()
    from cli.main import main as run

    run(prog_name="kontrast")
