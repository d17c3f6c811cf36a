"""The service keeps to its own description: an independent client reads it and sends whatever it allows,
and much that it does not."""

import subprocess
import sys

import pytest
from test_client import service  # noqa: F401

# That a recipe has a name that is known, and a snapshot a place, no schema can say.
NOT_SAID = "positive_data_acceptance"


def test_service_conforms_to_its_description(service, tmp_path):  # noqa: F811
    pytest.importorskip("schemathesis")
    service.create("described", recipe="words-3")
    run = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "run", f"{service.url.rstrip('/')}/openapi.json"]
        + ["--seed", "7", "--max-examples", "30", "--no-color", "--exclude-checks", NOT_SAID]
        + ["--phases", "examples,coverage,fuzzing", "--generation-database", "none"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stdout[-8000:]
    # It must have come as far as sending something.
    assert " generated" in run.stdout, run.stdout
