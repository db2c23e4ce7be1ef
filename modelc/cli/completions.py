"""`modelc completions`."""

from typing import Annotated, Literal

from cyclopts import Parameter

EXAMPLES = """Examples:
  modelc completions bash > ~/.local/share/bash-completion/completions/modelc
  modelc completions zsh > "${fpath[1]}/_modelc"
  modelc completions fish > ~/.config/fish/completions/modelc.fish"""


def completions(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell that is to complete.")], /
) -> None:
    """Print a script with which a shell completes commands, options, and the models of the store."""
    from modelc.cli.app import make_app

    print(make_app().generate_completion(shell=shell), end="")
