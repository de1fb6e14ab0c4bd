"""Begin the `kontrast` command: Ctrl-C ends it in order, whatever is being imported or taken down.

What is imported before the handler is set is not protected by it.
"""

from cli.interrupts import leave_at_ctrl_c


def main() -> None:
    """Run the command and exit."""
    leave_at_ctrl_c()
    from cli.main import main as run

    run(prog_name="kontrast")
