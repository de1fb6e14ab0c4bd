"""`kontrast completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from cli.printing.standard_output import print_document
from cli.running import ExitCode

_SHELLS: Final = ("bash", "zsh", "fish")
_EPILOG: Final = """\b
Examples:
  echo 'eval "$(kontrast completion bash)"' >> ~/.bashrc
  echo 'eval "$(kontrast completion zsh)"' >> ~/.zshrc
  kontrast completion fish > ~/.config/fish/completions/kontrast.fish

\b
Exit codes:
  0  printed
  2  the shell is unknown
"""


@click.command(epilog=_EPILOG)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, /, *, shell: str) -> int:
    """Print the script that lets SHELL complete commands, options and choices."""
    script = get_completion_class(shell)
    assert script is not None, f"click completes for {shell}"
    print_document(script(ctx.find_root().command, {}, "kontrast", "_KONTRAST_COMPLETE").source())
    return ExitCode.OK
