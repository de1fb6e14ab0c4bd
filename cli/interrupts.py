"""Let Ctrl-C end the process at once, or interrupt what runs."""

import _signal as signal  # the module itself takes milliseconds to import, in which Ctrl-C would be a traceback
import os

INTERRUPTED = 130


def leave_at_ctrl_c() -> None:
    """End at once at Ctrl-C: there is nothing to tidy up. A background job of a shell goes on ignoring it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(INTERRUPTED))


def interrupt_at_ctrl_c() -> None:
    """Let Ctrl-C end what runs now by KeyboardInterrupt: it can tidy up then."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
