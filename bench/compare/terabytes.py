#!/usr/bin/env python3
"""Calculates what terabytes would take from the costs that were measured, for the tables of `docs/guide/terabytes.md`.

Without `--check` it writes the tables into both pages; with it, it fails if a page has other ones. Nothing here is
measured: every cost is that of a row in `bench/results`, multiplied.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs/guide/terabytes.md", ROOT / "docs/zh/guide/terabytes.md"]

TERABYTES = [1, 5, 50]
# Bytes of text for a byte of compressed Parquet, as in articles of the web.
EXPANSION = 10 / 3
MAX_DOCUMENTS = 4.29e9

CORES, GIGABYTES_A_SECOND, USD_AN_HOUR, USD_A_GIGABYTE_MONTH = 64, 3.0, 4.2, 0.08
HOURS_A_MONTH = 730
CLUSTER_CORES = 512


def read_rows(name: str) -> list[dict]:
    return json.loads((ROOT / f"bench/results/{name}.json").read_text())["measured"]


def find_row(name: str, **wanted: object) -> dict:
    rows = [row for row in read_rows(name) if all(row[key] == value for key, value in wanted.items())]
    assert len(rows) == 1, (name, wanted, len(rows))
    return rows[0]


class Costs:
    """Costs of an article or a byte, on one core."""

    def __init__(self) -> None:
        run = find_row("bounded", corpus="articles", limit_megabytes="1000")
        small = find_row("bounded", corpus="articles", limit_megabytes="250")
        passages = find_row("bounded_passages", corpus="articles", limit_megabytes="250")
        text = small["gigabytes"] * 1e9
        self.bytes_an_article = run["gigabytes"] * 1e9 / run["documents"]
        self.dedup_seconds = 2 * run["seconds"] / run["documents"]
        # Learning forms takes about as long as the run itself.
        self.forms_seconds = self.dedup_seconds
        self.dedup_files = run["temporary_megabytes"] * 1e6 / run["documents"]
        self.passage_seconds_a_byte = 2 * (passages["seconds"] - small["seconds"]) / text
        self.passage_files_a_byte = (passages["temporary_megabytes"] - small["temporary_megabytes"]) * 1e6 / text
        search = find_row("contamination_runs", tool="lookalike", benchmarks="mmlu-gsm8k-agieval")
        self.search_seconds_a_byte = 2 / (search["megabytes_per_second"] * 1e6)
        spark = find_row("spark", corpus="en_docs")
        self.spark_factor = 1 / spark["share"]
        shuffled = [row for row in read_rows("spark_scale") if row["corpus"] == "en_docs"]
        self.shuffled_an_article = max(row["shuffled_bytes_a_document"] for row in shuffled)


def format_hours(hours: float) -> str:
    return f"{hours:.1f}" if hours < 10 else f"{hours:.0f}"


def format_terabytes(value: float) -> str:
    return f"{value / 1e12:.1f} TB" if value < 10e12 else f"{value / 1e12:.0f} TB"


def machine_rows(costs: Costs) -> list[list[str]]:
    rows = []
    for terabytes in TERABYTES:
        source = terabytes * 1e12
        text = source * EXPANSION
        documents = text / costs.bytes_an_article
        if documents > MAX_DOCUMENTS:
            rows.append([f"{terabytes} TB", f"{documents / 1e9:.1f}·10⁹", "`dedup`"] + ["–"] * 5)
            continue
        dedup = documents * costs.dedup_seconds / CORES / 3600
        with_forms = dedup + documents * costs.forms_seconds / CORES / 3600
        transfer = source / (GIGABYTES_A_SECOND * 1e9) / 3600
        steps = [
            ("`dedup --forms off`", dedup, 31 * documents, documents * costs.dedup_files),
            ("`dedup`", with_forms, 31 * documents, documents * costs.dedup_files),
            ("`dedup --passages remove`", with_forms + text * costs.passage_seconds_a_byte / CORES / 3600, 59 * documents,
             documents * costs.dedup_files + text * costs.passage_files_a_byte),
            ("`decontaminate`", text * costs.search_seconds_a_byte / CORES / 3600, 8 * documents, 0.0),
        ]
        for name, hours, memory, files in steps:
            # Rows are read again from a copy of their texts in `--scratch`. The objects of the store are in the directory
            # of `--work`, else in `--scratch`, while the run reads them.
            disk = files + text + source
            from_store = hours + 2 * transfer
            money = from_store * (USD_AN_HOUR + disk / 1e9 * USD_A_GIGABYTE_MONTH / HOURS_A_MONTH)
            rows.append([
                f"{terabytes} TB", f"{documents / 1e9:.1f}·10⁹", name, format_hours(hours), format_hours(from_store),
                f"{memory / 1e9:.0f} GB", format_terabytes(disk), f"{money:.0f} USD",
            ])
    return rows


def cluster_rows(costs: Costs) -> list[list[str]]:
    rows = []
    for terabytes in TERABYTES:
        text = terabytes * 1e12 * EXPANSION
        documents = text / costs.bytes_an_article
        # Spark learns no forms.
        core_hours = documents * costs.dedup_seconds * costs.spark_factor / 3600
        hours = core_hours / CLUSTER_CORES
        money = core_hours / CORES * USD_AN_HOUR
        rows.append([
            f"{terabytes} TB", f"{documents / 1e9:.1f}·10⁹", f"{core_hours:,.0f}", format_hours(hours),
            format_terabytes(documents * costs.shuffled_an_article), f"{money:.0f} USD",
        ])
    return rows


def write_table(page: str, name: str, rows: list[list[str]]) -> str:
    """Replaces the rows of a table between its marks, below its head."""
    pattern = re.compile(rf"(<!-- calculated {name} -->\n[^\n]*\n[^\n]*\n).*?(<!-- end -->)", re.S)
    lines = "".join("| " + " | ".join(row) + " |\n" for row in rows)
    replaced, count = pattern.subn(lambda found: found[1] + lines + found[2], page)
    assert count == 1, name
    return replaced


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a page has other tables")
    arguments = parser.parse_args()
    costs = Costs()
    for path in PAGES:
        page = path.read_text()
        wanted = write_table(page, "machine", machine_rows(costs))
        wanted = write_table(wanted, "cluster", cluster_rows(costs))
        if arguments.check and wanted != page:
            sys.exit(f"{path.relative_to(ROOT)} has other figures than bench/results: run bench/compare/terabytes.py")
        path.write_text(wanted)


if __name__ == "__main__":
    main()
