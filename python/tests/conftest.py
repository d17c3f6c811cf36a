"""What the tests share: the command and a made corpus."""

import os
import subprocess
from pathlib import Path

import pytest
from made import ROOT, made_documents


@pytest.fixture(scope="session")
def command():
    """Runs the command of this build."""
    program = Path(os.environ.get("LOOKALIKE_COMMAND", ROOT / "target/debug/lookalike"))
    if not program.exists():
        pytest.skip(f"{program} is not built")

    def run(*arguments, check=True):
        return subprocess.run([program, *map(str, arguments)], check=check, capture_output=True, text=True)

    run.program = program
    return run


@pytest.fixture(scope="session")
def documents():
    return made_documents(600)
