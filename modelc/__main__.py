"""`python -m modelc` is the `modelc` command."""

import sys

from modelc.cli import main

if __name__ == "__main__":
    sys.exit(main())
