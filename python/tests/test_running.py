"""Ctrl-C, progress, threads, and that the package says what it is."""

import doctest
import importlib.util
import inspect
import os
import pickle
import pkgutil
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time

import pytest

import lookalike.compat
import lookalike as la
from lookalike.compat.datasketch import MinHash, MinHashLSH
from lookalike.results import StreamVerdict
from made import ROOT, made_documents


def test_interrupt_ends_a_run():
    script = textwrap.dedent(
        """
        import lookalike as la, random, sys, threading, os, signal, time
        words = [f"w{number}" for number in range(5000)]
        texts = [" ".join(random.choices(words, k=400)) for _ in range(20000)]
        # The first call imports pyarrow, and Python can lose an interrupt in a callback of its imports.
        la.dedup(texts[:2], method="join")
        def interrupt():
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        begun = time.monotonic()
        try:
            while True:
                la.dedup(texts, method="join", threads=2)
        except KeyboardInterrupt:
            print(time.monotonic() - begun)
        # The process works on.
        assert la.dedup(["a b", "a b"]).kept == ["a b"]
        """
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 10


def test_interrupt_ends_a_long_comparison():
    script = textwrap.dedent(
        """
        import lookalike as la, os, random, signal, threading, time
        a, b = ("".join(random.choices("abcdefgh ", k=1_500_000)) for _ in range(2))
        def interrupt():
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        begun = time.monotonic()
        try:
            la.compare(a, b)
        except KeyboardInterrupt:
            print(time.monotonic() - begun)
        """
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 5


def test_signal_handler_of_the_caller_runs():
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    texts = [document["text"] * 20 for document in made_documents(4000)]
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Stop):
            for _ in range(200):
                la.dedup(texts, threads=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_progress_is_reported_and_can_raise():
    texts = [document["text"] * 40 for document in made_documents(4000)]
    told = []
    la.dedup(texts, progress=lambda *now: told.append(now), method="minhash", threads=1)
    assert {stage for stage, _, _ in told} <= {"read", "candidates", "forms", "decide", "write"}
    assert all(done <= total or total == 0 for _, done, total in told)

    def refuse(*_):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        for _ in range(50):
            la.dedup(texts, progress=refuse, threads=1)


def test_progress_bars():
    pytest.importorskip("tqdm")
    assert la.dedup(["a b", "a b"], progress=True).kept == ["a b"]
    assert la.dedup(["a b", "a b"], progress=False).kept == ["a b"]


def test_runs_release_the_interpreter():
    texts = [document["text"] * 20 for document in made_documents(3000)]
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    begun = time.monotonic()
    while time.monotonic() - begun < 1:
        la.dedup(texts, threads=1)
    stop.set()
    counter.join()
    assert counted[0] > 100


def test_runs_side_by_side():
    texts = [document["text"] for document in made_documents(500)]
    expected, found = la.dedup(texts).kept, []
    workers = [threading.Thread(target=lambda: found.append(la.dedup(texts).kept)) for _ in range(6)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert found == [expected] * 6


def test_all_calls_run_in_concurrent_threads():
    """Of many threads on what is shared, each gets what it gets alone."""
    texts = [document["text"] for document in made_documents(120)]
    recipe, kept = la.Recipe("default", ngram=3), la.dedup(texts).kept_rows.tolist()
    codes, signatures = la.simhash(texts, threads=1), la.minhash(texts, recipe=recipe, threads=1)
    shared, index, lsh = MinHash(), la.HammingIndex(), MinHashLSH()
    wrong = []

    def work(number):
        for round in range(6):
            own = MinHash()
            own.update_batch([text.encode() for text in texts])
            shared.update_batch([text.encode() for text in texts[round::6]])
            lsh.insert((number, round), own)
            index.add(codes, ids=range(1000 * (6 * number + round), 1000 * (6 * number + round) + len(texts)))
            same = [
                la.dedup(texts, threads=1).kept_rows.tolist() == kept,
                (la.simhash(texts, threads=2) == codes).all(),
                (la.minhash(texts, recipe=recipe, threads=2) == signatures).all(),
                la.compare(texts[0], texts[1]).a.fingerprint == (None if codes.mask[0] else codes[0]),
                (number, round) in lsh.query(own),
                pickle.loads(pickle.dumps(own)) == own,
            ]
            if not all(same):
                wrong.append((number, round, same))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert wrong == []
    assert len(lsh) == 48 and len(index) == 48 * int((~codes.mask).sum())
    alone = MinHash()
    alone.update_batch([text.encode() for text in texts])
    assert shared == alone and len(lsh.query(shared)) == 48


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="has an interpreter lock")
def test_interpreter_lock_stays_off():
    script = "import sys, lookalike as la\nla.dedup(['a b'] * 2)\nassert not sys._is_gil_enabled()"
    ran = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def _small_results(**options):
    """The results of calls with a few short texts, without what differs from run to run."""
    texts = ["the ferry leaves at seven", "The ferry leaves at seven!", "the ferry leaves at eight", "a bridge", ""]
    deduplicated = la.dedup(texts, threshold=0.6, **options)
    found = la.pairs(texts, threshold=0.6, **options)
    for summary in (deduplicated.summary, found.summary):
        summary.pop("seconds"), summary.pop("stages", None)
    compared = la.compare(texts[0], texts[2])
    segmented = la.segment(texts[:4], recipe="default").to_pydict()
    tables = [deduplicated.removed.to_pylist(), deduplicated.clusters.to_pylist(), found.pairs.to_pylist()]
    return deduplicated.kept, deduplicated.summary, found.summary, tables, repr(compared), compared.figures, segmented


def test_small_runs_have_the_results_of_runs_in_a_pool():
    here = _small_results()
    assert here[1]["removed"] == 2 and len(here[3][2]) == 2
    # With threads, and where somebody watches the progress, a pool does the work.
    assert _small_results(threads=2) == here
    assert _small_results(progress=lambda *_: None) == here
    # More threads than get a pool of their own: the later ones hand their work to others.
    results = []
    for _ in range(80):
        thread = threading.Thread(target=lambda: results.append(_small_results()))
        thread.start()
        thread.join()
    assert len(results) == 80 and all(result == here for result in results)


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads of Linux")
def test_small_runs_start_no_thread():
    script = textwrap.dedent(
        """
        import lookalike as la, os, pyarrow
        la.minhash(["a b"])
        before = os.listdir("/proc/self/task")
        for _ in range(3):
            la.dedup(["a b", "a b"]), la.pairs(["a b"]), la.compare("a b", "b c"), la.segment(["a b"], recipe="default")
        assert os.listdir("/proc/self/task") == before, (before, os.listdir("/proc/self/task"))
        """
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_process_works():
    la.dedup(["a b", "a b"])
    script = "import lookalike as la, os\nla.dedup(['a b'] * 3)\npid = os.fork()\nkept = la.dedup(['a b', 'a b']).kept\nassert kept == ['a b']\nif pid: assert os.waitpid(pid, 0)[1] == 0\nelse: os._exit(0)"
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=60).returncode == 0


#: Modules for packages that ./test does not install, or not for every version of Python, with a module of the package.
OPTIONAL = {"data_juicer": "data_juicer", "langchain": "langchain_core", "sklearn": "sklearn"}


def test_examples_of_the_docstrings():
    failed = attempted = 0
    compat = [f"compat.{module.name}" for module in pkgutil.iter_modules(lookalike.compat.__path__)]
    for name in [*(module.name for module in pkgutil.iter_modules(la.__path__)), *compat]:
        # These want a session or a service: beside the tests that have one. The last one ends the process.
        is_absent = name in OPTIONAL and importlib.util.find_spec(OPTIONAL[name]) is None
        if not is_absent and name not in ("spark", "ray", "_client", "_async_client", "_engine", "__main__"):
            result = doctest.testmod(importlib.import_module(f"lookalike.{name}"))
            failed, attempted = failed + result.failed, attempted + result.attempted
    result = doctest.testmod(la)
    for own in (MinHash, StreamVerdict):
        for test in doctest.DocTestFinder().find(own, own.__name__, globs={"la": la}):
            ran = doctest.DocTestRunner().run(test)
            failed, attempted = failed + ran.failed, attempted + ran.attempted
    assert failed + result.failed == 0 and attempted > 100


def test_tour_runs():
    tour = ROOT / "python/examples/tour.py"
    ran = subprocess.run([sys.executable, tour], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert "kept" in ran.stdout


def test_exports_are_documented():
    for name in la.__all__:
        if name not in ("RECIPES", "__version__", "presets"):
            assert "\n>>> " in inspect.getdoc(getattr(la, name)), name
    compat = ("compat.datasketch", "compat.rensa", "compat.simhash")
    for module in ("results", "errors", "service", *compat, "spark", "ray", "datasets", "datatrove", "llama_index"):
        module = importlib.import_module(f"lookalike.{module}")
        for name in module.__all__:
            assert "\n>>> " in inspect.getdoc(getattr(module, name)), name


def test_types_equal_the_engine(tmp_path):
    """The stubs say what the compiled module has, and callers see them."""
    assert (ROOT / "python/lookalike/py.typed").exists()
    pytest.importorskip("mypy")
    settings = tmp_path / "mypy.ini"
    settings.write_text(f"[mypy]\nfollow_imports = silent\nmypy_path = {ROOT / 'python'}\n")
    # Whether classes may have a common subclass is of no use to callers.
    arguments = ["lookalike._engine", "--ignore-disjoint-bases", "--mypy-config-file", str(settings)]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
