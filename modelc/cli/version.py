"""`modelc version`."""

from modelc.version import version_line

EXAMPLES = "Example:\n  modelc version"


def version() -> None:
    """Show the version and the git commit it was built from."""
    print(version_line())
