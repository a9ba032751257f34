"""`bayplan completion SHELL`: the script that makes the shell ask bayplan for what may come next."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    source <(bayplan completion bash)
    source <(bayplan completion zsh)
    bayplan completion fish | source
    """
    kind = get_completion_class(shell)
    assert kind is not None  # the argument's choices are click's shells
    # The base class's source: bash's own runs a bash first, to look at its version.
    script = ShellComplete.source(kind(ctx.find_root().command, {}, "bayplan", "_BAYPLAN_COMPLETE"))
    click.echo(script, nl=False)
