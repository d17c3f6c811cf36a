"""``python -m lookalike`` and the script ``lookalike``: the command itself, from the package."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command with the arguments of the process and ends the process with its exit code."""
    from ._engine import run_command

    code = run_command(["lookalike", *sys.argv[1:]])
    sys.stdout.flush()
    # Threads of the command may still run, and nothing of Python is left to do.
    os._exit(code)


if __name__ == "__main__":
    main()
