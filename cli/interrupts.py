"""Ctrl-C that ends the process at once, or interrupts the running code."""

import _signal as signal  # `signal` takes milliseconds to import, in which Ctrl-C would print a traceback
import os

INTERRUPTED = 130


def leave_at_ctrl_c() -> None:
    """End at once at Ctrl-C without cleanup. A shell's background job still ignores Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(INTERRUPTED))


def interrupt_at_ctrl_c() -> None:
    """Let Ctrl-C raise KeyboardInterrupt in the running code, which can then clean up."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
