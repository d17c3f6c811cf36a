"""The command of this build, as a fixture for tests in several folders."""

import os
import subprocess
from pathlib import Path

import pytest
from made import ROOT

#: The program. A variable names another one.
PROGRAM = Path(os.environ.get("LOOKALIKE_COMMAND", ROOT / "target/debug/lookalike"))


@pytest.fixture(scope="session")
def command():
    """Runs the command of this build."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")

    def run(*arguments, check=True):
        return subprocess.run([PROGRAM, *map(str, arguments)], check=check, capture_output=True, text=True)

    run.program = PROGRAM
    return run
