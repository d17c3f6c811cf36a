"""Runs the own tests of the peers of the Python package against it, with the import replaced.

    python bench/compare/peer_suites.py datasketch=DIR rensa=DIR simhash=DIR

Each DIR is the source of a peer, as its source distribution or its repository has it. Nothing of it is copied: its tests
run where they are, with a module of the peer's name that has the classes of `lookalike`. They run with the peer itself
too, which has to be installed, because a test that the peer fails says nothing. Printed are the tests that the peer
passes and the package does not.

It wants pytest and what the peers' tests want: `pip install pytest numpy scipy scikit-learn aiounittest redis mockredispy`.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).parents[2]

#: Where the sources of a peer have their tests.
TESTS = {"datasketch": "test", "rensa": "tests", "simhash": "tests"}

#: Tests about other things than the calls: a benchmark's own code, and a GPU.
OTHER_THINGS = ("test_benchmarks.py", "test_minhash_gpu.py")

#: A package of the peer's name. Its modules are those of the peer by name, and have the classes of lookalike.
STAND_IN = '''
import importlib.abc, importlib.machinery, sys, types
import lookalike

class Part(types.ModuleType):
    def __getattr__(self, name):
        if name in PARTS and self.__name__ == PEER:
            return importlib.import_module(PEER + "." + name)
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(lookalike, name)

class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name == PEER or name.startswith(PEER + "."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        return Part(spec.name)
    def exec_module(self, module):
        pass

sys.meta_path.insert(0, Finder())
'''
PARTS = ("minhash", "lsh", "lshforest", "lshensemble", "weighted_minhash", "hyperloglog", "lean_minhash", "aio")


def run_tests(folder, before):
    """Returns the outcome of each test of a folder, by its name."""
    with tempfile.TemporaryDirectory() as work:
        report = pathlib.Path(work, "report.xml")
        pathlib.Path(work, "conftest_of_peer.py").write_text(before)
        ignored = [f"--ignore={path}" for path in folder.rglob("*.py") if path.name in OTHER_THINGS]
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "conftest_of_peer", "-p", "no:cacheprovider", *ignored]
            + ["--junitxml", str(report), str(folder)],
            cwd=work,
            env={**os.environ, "PYTHONPATH": f"{work}:{ROOT / 'python'}", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=1800,
        )
        outcomes = {}
        for case in ElementTree.parse(report).iter("testcase"):
            failed = [case.find(kind) for kind in ("failure", "error")]
            reason = next((one.get("message", "?") for one in failed if one is not None), None)
            if case.find("skipped") is None:
                outcomes[f"{case.get('classname')}::{case.get('name')}"] = reason
        return outcomes


def compare_suite(peer, source):
    folder = pathlib.Path(source, TESTS[peer]).resolve()
    theirs = run_tests(folder, "")
    ours = run_tests(folder, STAND_IN.replace("PEER", repr(peer)).replace("PARTS", repr(PARTS)) + "import importlib\n")
    passed = [name for name, reason in theirs.items() if reason is None]
    if not passed:
        print(f"{peer}: the peer passes none of its tests; the first says: {next(iter(theirs.values()), 'nothing')}")
        return
    missed = [name for name in passed if ours.get(name, "it does not run") is not None]
    print(f"{peer}: the peer passes {len(passed)} of its tests, of which the package passes {len(passed) - len(missed)}")
    for name in missed:
        print(f"  {name}: {str(ours.get(name, 'it does not run')).splitlines()[0][:150]}")


def main():
    for argument in sys.argv[1:]:
        peer, _, source = argument.partition("=")
        if peer not in TESTS or not pathlib.Path(source, TESTS[peer]).is_dir():
            sys.exit(f"{argument}: give PEER=DIR, a source with tests of one of {', '.join(TESTS)}")
        compare_suite(peer, source)


if __name__ == "__main__":
    main()
