"""Runs the own tests of the peers of the Python package against it, with the import replaced.

    python bench/compare/peer_suites.py datasketch=DIR rensa=DIR simhash=DIR

Each DIR is the source of a peer: its source distribution, if that has the tests, as rensa's has
(`pip download --no-deps --no-binary rensa rensa==0.5.0`), or else its repository. Nothing of it is copied: its tests run
where they are, with a module of the peer's name that has the classes of `lookalike`. They run with the peer itself
too, which has to be installed, because a test that the peer fails says nothing. Printed are the tests that the peer
passes and the package does not.

It wants pytest and what the peers' tests want: `pip install pytest pytest-asyncio numpy scipy scikit-learn aiounittest
redis mockredispy mock motor`.

datasketch's tests of indexes in Redis want a server at port 6379. The script starts one of its own if `redis-server` is
installed and the port is free, and says what it does not run otherwise.
"""

import collections
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).parents[2]

#: Where the sources of a peer have their tests.
TESTS = {"datasketch": "test", "rensa": "tests", "simhash": "tests"}

#: Tests about other things than the calls: a benchmark's own code, and a GPU.
OTHER_THINGS = ("test_benchmarks.py", "test_minhash_gpu.py")

#: A package of the peer's name. Its modules are those of the peer by name, and have the classes of `lookalike.compat`.
STAND_IN = '''
import importlib.abc, importlib.machinery, sys, types

class Part(types.ModuleType):
    def __getattr__(self, name):
        if name in PARTS and self.__name__ == PEER:
            return importlib.import_module(PEER + "." + name)
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module("lookalike.compat." + PEER), name)

class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name == PEER or name in [PEER + "." + part for part in PARTS]:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        return Part(spec.name)
    def exec_module(self, module):
        pass

sys.meta_path.insert(0, Finder())
'''
#: Modules of the peers. A name that is none of them is a class, or is not there.
PARTS = ("minhash", "lean_minhash", "b_bit_minhash", "weighted_minhash", "hyperloglog", "hyperloglog_const", "hnsw", "storage")
PARTS += ("lsh", "lsh_bloom", "lshforest", "lshensemble", "aio", "experimental", "experimental.aio", "experimental.aio.lsh")


#: Where the tests of datasketch look for Redis.
REDIS_ADDRESS = ("127.0.0.1", 6379)


def accepts_connections(address):
    with socket.socket() as probe:
        return probe.connect_ex(address) == 0


@contextlib.contextmanager
def redis_server():
    """Runs a Redis server of its own, and yields the variables that make datasketch test with it."""
    program = shutil.which("redis-server")
    if program is None:
        print("redis-server is not installed (Debian: redis-server): the tests in Redis do not run")
        yield {}
        return
    if accepts_connections(REDIS_ADDRESS):
        print(f"port {REDIS_ADDRESS[1]} is taken, perhaps by data of yours: the tests in Redis do not run")
        yield {}
        return
    with tempfile.TemporaryDirectory() as work:
        arguments = ["--bind", REDIS_ADDRESS[0], "--port", str(REDIS_ADDRESS[1]), "--save", "", "--dir", work]
        process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 20
            while not accepts_connections(REDIS_ADDRESS):
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"redis-server does not answer at port {REDIS_ADDRESS[1]} after 20 seconds")
                time.sleep(0.05)
            yield {"DO_TEST_REDIS": "true"}
        finally:
            process.terminate()
            process.wait(20)


def run_tests(folder, before, variables):
    """Returns the outcome of each test of a folder, by its name."""
    with tempfile.TemporaryDirectory() as work:
        report = pathlib.Path(work, "report.xml")
        pathlib.Path(work, "conftest_of_peer.py").write_text(before)
        ignored = [f"--ignore={path}" for path in folder.rglob("*.py") if path.name in OTHER_THINGS]
        # One file that cannot be read does not end the others, and options of the peer's own project do not count.
        options = ["--continue-on-collection-errors", "--override-ini=addopts=", "--junitxml", str(report)]
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "conftest_of_peer", "-p", "no:cacheprovider", *ignored]
            + [*options, str(folder)],
            cwd=work,
            env={**os.environ, "PYTHONPATH": f"{work}:{ROOT / 'python'}", "PYTHONDONTWRITEBYTECODE": "1", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
        )
        if not report.exists():
            sys.exit(f"{folder}: pytest did not run:\n{run.stdout}")
        outcomes = {}
        for case in ElementTree.parse(report).iter("testcase"):
            failed = [case.find(kind) for kind in ("failure", "error")]
            reason = next((one.get("message", "?") for one in failed if one is not None), None)
            if case.find("skipped") is None:
                outcomes[f"{case.get('classname')}::{case.get('name')}"] = reason
        return outcomes


def compare_suite(peer, source, variables):
    folder = pathlib.Path(source, TESTS[peer]).resolve()
    theirs = run_tests(folder, "", variables)
    stand_in = STAND_IN.replace("PEER", repr(peer)).replace("PARTS", repr(PARTS)) + "import importlib\n"
    ours = run_tests(folder, stand_in, variables)
    passed = [name for name, reason in theirs.items() if reason is None]
    if not passed:
        print(f"{peer}: the peer passes none of its tests; the first says: {next(iter(theirs.values()), 'nothing')}")
        return
    missed = [name for name in passed if ours.get(name, "it does not run") is not None]
    print(f"{peer}: the peer passes {len(passed)} of its tests, of which the package passes {len(passed) - len(missed)}")
    for name in missed:
        if name in ours:
            print(f"  {name}: {str(ours[name]).splitlines()[0][:150]}")
    unread = collections.Counter(name.split("::")[0] for name in missed if name not in ours)
    for place, tests in unread.items():
        print(f"  {place}: its {tests} tests do not run, because their file does not import")


def main():
    sources = [argument.partition("=")[::2] for argument in sys.argv[1:]]
    for peer, source in sources:
        if peer not in TESTS or not pathlib.Path(source, TESTS[peer]).is_dir():
            sys.exit(f"{peer}={source}: give PEER=DIR, a source with tests of one of {', '.join(TESTS)}")
    with redis_server() as variables:
        for peer, source in sources:
            compare_suite(peer, source, variables)


if __name__ == "__main__":
    main()
