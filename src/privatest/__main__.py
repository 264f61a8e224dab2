"""``python -m privatest`` is the command line."""

import sys

from privatest.cli import main

if __name__ == "__main__":
    sys.exit(main())
