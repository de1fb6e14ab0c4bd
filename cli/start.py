"""Where the `kontrast` command begins: Ctrl-C ends it in order, whatever is being imported or taken down.

Nothing else belongs here: what is imported before the handler is set is not protected by it.
"""

import _signal as signal  # the module itself takes milliseconds to import, in which Ctrl-C would be a traceback
import os

INTERRUPTED = 130


def main() -> None:
    """Run the command and exit."""
    leave_at_ctrl_c()
    from cli.main import main as run

    run(prog_name="kontrast")


def leave_at_ctrl_c() -> None:
    """End at once at Ctrl-C: there is nothing to tidy up. A background job of a shell goes on ignoring it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(INTERRUPTED))


def interrupt_at_ctrl_c() -> None:
    """Let Ctrl-C end what runs now by KeyboardInterrupt: it can tidy up then."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
