#!/usr/bin/env python3
"""Writes the measured figures into the pages for users: single ones by their names, and the tables of `docs/guide/sizing.md`.

A page states a measured figure between two marks, `<!-- figure NAME -->1.27<!-- / -->`, and the value comes from a row in
`bench/results`. So a figure has one value on all pages, in English and in Chinese. `--check` fails if a page has another
value, or an amount of time, memory, speed or money that is neither a marked figure nor one of `STATED`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from terabytes import find_row, read_rows, write_table

ROOT = Path(__file__).resolve().parents[2]
SIZING = [ROOT / "docs/guide/sizing.md", ROOT / "docs/zh/guide/sizing.md"]
#: Pages that state figures and are in English only.
MORE_PAGES = ["docs/evaluation.md"]

#: Limits, settings, sizes of examples, prices and assumptions: amounts on pages that nobody measured.
STATED = {
    # Sizes of corpora and assumptions of calculations.
    "180 MB", "4.7 kB", "512 GB", "5 TB", "50 TB", "25 Gbit/s", "200 MB",
    # Disk of a service with 5,000 English articles, by the sizes of its files.
    "4.1 kB", "1.8 kB", "1.1 kB",
    # Bytes of layouts, which follow from the code.
    "8 bytes", "16 bytes", "23 bytes", "28 bytes", "31 bytes", "40 bytes", "64 bytes", "80 bytes", "160 bytes", "512 bytes", "600 bytes",
    # Limits and settings.
    "64 KiB", "1 MiB", "4 MiB", "12 MiB", "16 MiB", "32 MiB", "64 MiB", "256 MiB", "1 GiB", "4 GiB",
    "3 MB", "20 MB", "64 MB", "128 MB", "256 MB", "1 GB", "8 times", "250 ms", "10 s", "20 s", "30 s",
    "60 s", "5 minutes", "10 minutes", "4 a second", "1,000 a second", "2,000 a second",
    # Prices.
    "4.20 USD", "0.08 USD", "0.005 USD", "0.0004 USD", "0.023 USD",
    # Calculated from these prices: requests of three replicas, and 48 snapshots for each gigabyte.
    "76.72 USD", "19,181 USD", "1.10 USD",
}  # fmt: skip


def dedup_row(corpus: str) -> dict:
    return find_row("dedup", corpus=corpus, format="as it is", threads=2, threshold=0.75)


def memory_row(corpus: str) -> dict:
    return find_row("memory", corpus=corpus, format="as it is")


def hamming_row(count: int) -> dict:
    name = "hamming_large" if count == 10**9 else "hamming"
    rows = [row for row in read_rows(name) if (row["count"], row["bits"], row["distance"]) == (count, 64, 3)]
    return min(rows, key=lambda row: row["batched_microseconds"])


def read_figure(name: str, what: str, unit: str) -> float:
    return find_row(name, what=what, unit=unit)["figure"]


def form_times() -> list[float]:
    seconds = {(row["corpus"], row["forms"]): row["seconds"] for row in read_rows("forms_cost")}
    return [seconds[corpus, "learn"] / value for (corpus, forms), value in seconds.items() if forms == "off"]


def find_run(name: str, tool: str, **wanted: object) -> dict:
    """Returns the run of a tool in a comparison; names of tools are their beginnings."""
    runs = json.loads((ROOT / f"bench/results/{name}.json").read_text())["runs"]
    [run] = [run for run in runs if run["tool"].startswith(tool) and wanted.items() <= run.items()]
    return run


def peer_rate(tool: str, file: str) -> str:
    return f"{find_run('peers', tool, file=file)['megabytes_per_second']:.1f}"


def token_rate(package: str) -> str:
    row = find_row("python", what="`MinHash` and `MinHashLSH`: update, a token at a time")
    return f"{row[package] / 1e6:.2g}"


def audit_share(corpus: str, method: str) -> str:
    return f"{100 * find_row('audit', corpus=corpus, method=method)['share']:.0f}"


def simhash_row() -> dict:
    return find_row("compat_peers", corpus="en_docs", recipe="1e0ng")


def insert_row(what: str) -> dict:
    return find_row("replicas_inserts", what=what)


AT_RATE = "single, {}, 64 connections at 2000 a second"
NO_LOG = "insert, no log, one after another"
LOG = "insert, log, one after another, 1,000 records a second"
LONE = "lone insert, log, 4 records a second"

FIGURES: dict[str, Callable[[], str]] = {
    "dedup-english-seconds": lambda: f"{dedup_row('en_docs')['seconds']:.2f}",
    "dedup-english-rate": lambda: f"{dedup_row('en_docs')['megabytes_per_second']:.0f}",
    "dedup-chinese-rate": lambda: f"{dedup_row('zh_docs')['megabytes_per_second']:.0f}",
    "dedup-titles-rate": lambda: f"{dedup_row('zh_short')['million_documents_per_second']:.2f}",
    "dedup-english-megabytes": lambda: f"{memory_row('en_docs')['peak_megabytes']:.0f}",
    "dedup-chinese-megabytes": lambda: f"{memory_row('zh_docs')['peak_megabytes']:.0f}",
    "dedup-titles-megabytes": lambda: f"{memory_row('zh_short')['peak_megabytes']:.0f}",
    "billion-gigabytes": lambda: f"{hamming_row(10**9)['bytes_each']:.1f}",
    "billion-microseconds": lambda: f"{hamming_row(10**9)['batched_microseconds']:.2f}",
    "bulk-titles": lambda: f"{read_figure('http_large', 'bulk, titles', 'thousand documents/s'):.0f},000",
    "bulk-articles": lambda: f"{read_figure('http', 'bulk, english', 'MB/s'):.0f}",
    "single-inserts": lambda: f"{read_figure('http', 'single, documents, 64 connections', 'thousand documents/s'):.0f},000",
    "insert-milliseconds": lambda: f"{read_figure('http_large', AT_RATE.format('documents'), 'ms, 99th percentile'):.2f}",
    "check-milliseconds": lambda: f"{read_figure('http_large', AT_RATE.format('query'), 'ms, 99th percentile'):.2f}",
    "compaction-milliseconds": lambda: (
        f"{read_figure('compaction', 'inserts of 1, 2000 documents a second, 99 of 100 (while compacted)', 'ms'):.1f}"
    ),
    "service-bytes-least": lambda: (
        f"{read_figure('http_large', 'resident memory of the process behind it', 'B/document'):.0f}"
    ),
    "service-bytes-most": lambda: f"{read_figure('http', 'resident memory of the process behind it', 'B/document'):.0f}",
    "restart-seconds": lambda: f"{read_figure('http_large', 'from kill -9 to ready again', 's'):.0f}",
    "replica-seconds": lambda: f"{find_row('replicas_beginning', titles=10_000_000)['new_replica_ready_s']:.0f}",
    "log-median": lambda: f"{insert_row(LOG)['median_ms']:.1f}",
    "log-99": lambda: f"{insert_row(LOG)['p99_ms']:.1f}",
    "lone-median": lambda: f"{insert_row(LONE)['median_ms']:.1f}",
    "lone-99": lambda: f"{insert_row(LONE)['p99_ms']:.1f}",
    "no-log-median": lambda: f"{insert_row(NO_LOG)['median_ms']:.1f}",
    "no-log-99": lambda: f"{insert_row(NO_LOG)['p99_ms']:.1f}",
    "forms-times-least": lambda: f"{min(form_times()):.1f}",
    "forms-times-most": lambda: f"{max(form_times()):.1f}",
    "faiss-microseconds": lambda: f"{find_run('faiss', 'faiss IndexBinaryMultiHash')['microseconds']:.0f}",
    "beside-faiss-microseconds": lambda: f"{find_run('faiss', 'lookalike in memory: 32,32; 1,1')['microseconds']:.2f}",
    "rensa-rate": lambda: peer_rate("rensa", "en_docs.jsonl"),
    "beside-rensa-rate": lambda: peer_rate("lookalike", "en_docs.jsonl"),
    "datatrove-rate": lambda: peer_rate("datatrove", "en_docs_4000.jsonl"),
    "beside-datatrove-rate": lambda: peer_rate("lookalike", "en_docs_4000.jsonl"),
    "datasketch-token-rate": lambda: token_rate("other"),
    "token-rate": lambda: token_rate("package"),
    "simhash-rate": lambda: f"{simhash_row()['package_megabytes_per_second']:.1f}",
    "beside-simhash-rate": lambda: f"{simhash_row()['command_megabytes_per_second']:.0f}",
    "audit-chinese-percent": lambda: audit_share("zh_docs", "auto"),
    "audit-simhash-english-percent": lambda: audit_share("en_docs", "simhash, distance 3"),
    "audit-simhash-chinese-percent": lambda: audit_share("zh_docs", "simhash, distance 3"),
    "spark-times": lambda: f"{1 / find_row('spark', corpus='en_docs')['share']:.1f}",
}

MARKED = re.compile(r"<!-- figure ([\w-]+) -->(.*?)<!-- / -->", re.DOTALL)


def run_rows() -> list[list[str]]:
    """Rows of the runs of `dedup`: corpus, documents, text, seconds, memory; limit, seconds, memory, temporary files."""
    rows = []
    for corpus in ("en_docs", "zh_docs", "zh_short"):
        run, memory = dedup_row(corpus), memory_row(corpus)
        text, peak = f"{run['megabytes']:.0f} MB", f"{memory['peak_megabytes']:.0f} MB"
        rows.append([f"`{corpus}`", f"{run['documents']:,}", text, f"{run['seconds']:.1f}", peak, "", "", "", ""])
    for corpus, documents, limit in (("articles", 2_167_088, "1000"), ("titles", 16_000_000, "2000")):
        whole, bounded = (
            find_row("bounded", corpus=corpus, documents=documents, limit_megabytes=megabytes) for megabytes in ("none", limit)
        )
        cells = [f"`{corpus}`", f"{documents:,}", f"{whole['gigabytes']:.1f} GB", f"{whole['seconds']:.0f}"]
        cells += [f"{whole['peak_megabytes']:,} MB", f"{int(limit):,} MB", f"{bounded['seconds']:.0f}"]
        rows.append([*cells, f"{bounded['peak_megabytes']:,} MB", f"{bounded['temporary_megabytes']:,} MB"])
    return rows


def index_rows() -> list[list[str]]:
    """Rows of the indexes of fingerprints: fingerprints, memory, microseconds."""
    rows = []
    for count in (5 * 10**7, 10**9):
        row = hamming_row(count)
        memory = f"{count * row['bytes_each'] / 1e9:.1f} GB"
        rows.append([f"{count:,}", memory, f"{row['batched_microseconds']:.2f}"])
    return rows


def with_figures(page: str) -> str:
    def filled(found: re.Match) -> str:
        if found[1] not in FIGURES:
            sys.exit(f"there is no figure '{found[1]}'")
        return f"<!-- figure {found[1]} -->{FIGURES[found[1]]()}<!-- / -->"

    return MARKED.sub(filled, page)


UNITS = {
    "seconds": "s", "second": "s", "秒": "s", "毫秒": "ms", "微秒": "µs", "分钟": "minutes", "小时": "hours", "hour": "hours",
    "minute": "minutes", "字节": "bytes", "倍": "times", "美元": "USD",
}  # fmt: skip
UNIT = "µs|ms|seconds?|s|minutes?|hours?|bytes|[kMGT]B|[KMG]iB|Gbit|毫秒|微秒|秒|分钟|小时|字节|times|倍|USD|美元"
NUMBER = r"\d(?:[\d,.]*\d)?"
AMOUNT = re.compile(
    rf"(?<![A-Za-z0-9_.])(?P<number>{NUMBER}(?: (?:to|到|至) {NUMBER})?)\s?(?P<unit>{UNIT})(?P<rate>/s)?(?![A-Za-z])"
    rf"|每秒[^\d，。；、|]{{0,6}}(?P<chinese>{NUMBER})|(?P<english>{NUMBER})(?: [a-z]+)? (?:a|per) second"
)


def find_amounts(page: str) -> Iterator[str]:
    """Yields the amounts of time, memory, speed and money in the text of a page, with English units."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!-- (?:calculated|table) .*?<!-- end -->", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "", MARKED.sub("", text))
    for found in AMOUNT.finditer(re.sub(r"\s+", " ", text)):
        if rate := found["chinese"] or found["english"]:
            yield f"{rate} a second"
            continue
        number = re.sub(" (?:到|至) ", " to ", found["number"])
        yield f"{number} {UNITS.get(found['unit'], found['unit'])}{found['rate'] or ''}"


def find_user_pages() -> list[Path]:
    """Returns the pages that users read in both languages: those that have a Chinese one, and their Chinese ones."""
    pages = [ROOT / "README.md", ROOT / "README.zh.md"]
    for chinese in sorted((ROOT / "docs/zh").rglob("*.md")):
        pages += [ROOT / "docs" / chinese.relative_to(ROOT / "docs/zh"), chinese]
    return pages


def find_other_amounts() -> list[str]:
    """Returns the amounts on pages that are neither marked figures nor among `STATED`, each with its page."""
    pages = ((page, page.read_text(encoding="utf-8")) for page in find_user_pages())
    return [
        f"{page.relative_to(ROOT)}: {amount}" for page, text in pages for amount in find_amounts(text) if amount not in STATED
    ]


def fill_page(path: Path) -> str:
    page = with_figures(path.read_text(encoding="utf-8"))
    if path in SIZING:
        page = write_table(write_table(page, "runs", run_rows()), "indexes", index_rows())
    return page


def find_figure_pages() -> list[Path]:
    return [*find_user_pages(), *(ROOT / page for page in MORE_PAGES)]


def find_problems() -> list[str]:
    """Returns the pages with other figures than `bench/results`, and amounts that are not figures by name.

    A mark at the beginning of a line is a problem too, because it ends the paragraph in HTML.
    """
    problems = []
    for path in find_figure_pages():
        name, page = path.relative_to(ROOT), path.read_text(encoding="utf-8")
        if fill_page(path) != page:
            problems.append(f"{name} has other figures than bench/results: run bench/compare/page_figures.py")
        if re.search(r"^\s*<!-- figure ", page, re.MULTILINE):
            problems.append(f"{name} has a mark of a figure at the beginning of a line: put a word before it")
    for amount in find_other_amounts():
        problems.append(f"{amount} is neither a named figure nor a stated limit (see bench/compare/page_figures.py)")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a page has other figures, or figures without a name")
    if parser.parse_args().check:
        problems = find_problems()
        if problems:
            sys.exit("\n".join(problems))
        return
    for path in find_figure_pages():
        path.write_text(fill_page(path), encoding="utf-8")


if __name__ == "__main__":
    main()
