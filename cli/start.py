"""Start of the `kontrast` command, which Ctrl-C ends without a traceback, even during imports and at the end.

This module's own imports run before the handler is set, so they are not protected.
"""

from cli.interrupts import leave_at_ctrl_c


def main() -> None:
    """Run the command and exit."""
    leave_at_ctrl_c()
    import resource

    # A core of it, or of its Java, would have gigabytes and all passwords. `prlimit` still allows one.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    from cli.main import main as run

    run(prog_name="kontrast")
