"""Texts for the tests: real ones of the repository and of a folder beside it, and generated ones."""

import json
import os
import random
from pathlib import Path

import pyarrow as pa

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("LOOKALIKE_DATA", ROOT.parent / "shared" / "data"))


def of_the_repository(rows: int) -> pa.Table:
    """News in several languages, paragraphs of the documents and of the sources, which repeat much."""
    news = (ROOT / "examples/news.jsonl").read_text(encoding="utf-8").splitlines()
    table = {row["id"]: row["text"] for row in map(json.loads, news)}
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "crates").rglob("*.rs"))]
    for path in files:
        for at, paragraph in enumerate(path.read_text(encoding="utf-8").split("\n\n")):
            if len(table) == rows:
                break
            table[f"{path.relative_to(ROOT)}:{at}"] = paragraph
    return pa.table({"id": list(table), "text": list(table.values())})


def real(name: str, rows: int, every: int = 1):
    """Some rows of a data set as a table of id and text; None where it is not there."""
    path = DATA / name
    if not path.exists():
        return None
    ids, texts = [], []
    with pa.input_stream(str(path), compression="zstd") as stream:
        for at, line in enumerate(_lines(stream)):
            if len(ids) == rows:
                break
            if at % every:
                continue
            if name.endswith(".tsv.zst"):
                row = line.decode().rstrip("\n").split("\t")
                if row[0] == "id":
                    continue
                ids.append(row[0])
                texts.append(row[3])
            else:
                row = json.loads(line)
                ids.append(row["id"])
                texts.append(row["text"])
    return pa.table({"id": ids, "text": texts})


def _lines(stream):
    rest = b""
    while chunk := stream.read(1 << 20):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def known_and_new() -> tuple[pa.Table, pa.Table]:
    """Documents that are known and others, with texts that both have, in several sites."""
    table = generated(500, 30, seed=9).append_column("site", pa.array([at % 2 for at in range(500)]))
    return table.slice(0, 200), table.slice(200)


def generated(rows: int, length: int, seed: int = 1) -> pa.Table:
    """Families that drift, equal texts, texts of one template, poor, empty and Chinese ones."""
    random.seed(seed)
    word = lambda: f"w{random.randrange(3000)}"
    words = lambda count: [word() for _ in range(count)]
    families = [words(length) for _ in range(max(rows // 12, 1))]
    template = words(length)
    texts = []
    for _ in range(rows):
        kind = random.randrange(12)
        if kind == 0:
            texts.append(random.choice(["", " ", "!", "one", "One.", "清晨六點", "清晨六点！", "😀"]))
        elif kind == 1 and texts:
            texts.append(random.choice(texts).upper())
        elif kind == 2:
            texts.append(" ".join(template[: length * 3 // 5] + words(length * 2 // 5)))
        else:
            edited = list(random.choice(families))
            for _ in range(random.randrange(1 + length // 8)):
                edited[random.randrange(length)] = word()
            texts.append(" ".join(edited))
    numbers = random.sample(range(10 * rows), rows)
    return pa.table(
        {
            "id": [f"{number:x}" for number in numbers],
            "text": texts,
            "weight": [random.choice([None, 1.5, 2.0, -3.0]) for _ in range(rows)],
            "name": [random.choice([None, "b", "a", "10", "9"]) for _ in range(rows)],
        }
    )


def skewed(rows: int, length: int, own: int, seed: int = 5) -> pa.Table:
    """Texts of which three in ten are of one template with ``own`` words of their own."""
    random.seed(seed)
    words = lambda count: [f"w{random.randrange(100_000)}" for _ in range(count)]
    template = words(length)
    texts = [
        " ".join(template[own:] + words(own)) if at % 10 < 3 else " ".join(words(length))
        for at in range(rows)
    ]
    return pa.table({"id": [f"{at:06}" for at in range(rows)], "text": texts})


def chained(rows: int, seed: int = 11) -> pa.Table:
    """Texts of which each is similar to the one before and the one after it alone, in no order."""
    texts = [" ".join(f"c{word}" for word in range(3 * at, 3 * at + 40)) for at in range(rows)]
    random.seed(seed)
    random.shuffle(texts)
    return pa.table({"id": [f"{at:06}" for at in range(rows)], "text": texts})


def repeated(rows: int, seed: int = 12) -> pa.Table:
    """Short texts of which half repeat another one, some of them with an edited text beside."""
    random.seed(seed)
    words = [" ".join(f"t{random.randrange(50_000)}" for _ in range(12)) for _ in range(rows // 2)]
    texts = words + [text.upper() if at % 3 else text + " more" for at, text in enumerate(words)]
    random.shuffle(texts)
    return pa.table({"id": [f"{at:06}" for at in range(len(texts))], "text": texts})


#: A notice that many documents of :func:`copied` have.
NOTICE = "This text may be copied and changed as long as the names of all authors stay in it"


def copied(rows: int, seed: int = 5) -> pa.Table:
    """Texts in two scripts with passages of earlier ones, verbatim, edited and reordered, ids in no order, a
    notice that many have, empty texts and null ones, and a column of equal values."""
    source = random.Random(seed)
    words = [a + b for a in ("ka", "lo", "mi", "ren", "sta", "tu") for b in ("ba", "do", "fen", "gri", "l", "m")]
    han = "渡船七点离开岛上没有人会错过它清晨老长已经把缆绳解了今天要去东边的小海风很大他们等到中午才出发"
    texts = []
    for number in range(rows):
        if number % 3 == 2:
            parts = ["".join(source.choice(han) for _ in range(source.randrange(60, 200)))]
        else:
            parts = [" ".join(source.choice(words) for _ in range(source.randrange(40, 200)))]
        earlier = [text for text in texts if text]
        if number > 5 and source.random() < 0.7:
            taken = source.choice(earlier)
            start = source.randrange(len(taken) // 2)
            taken = taken[start : start + source.randrange(80, 500)]
            how = source.randrange(3)
            if how == 1:
                taken = taken.replace(source.choice(words), "😀 edited").replace("岛", "島，")
            elif how == 2:
                half = len(taken) // 2
                taken = taken[half:] + " " + taken[:half]
            parts.insert(source.randrange(2), taken)
        if source.random() < 0.3:
            parts.append(NOTICE)
        text = "\n".join(parts)
        texts.append(source.choice([None, "", "\ufeffone"]) if number % 20 == 19 else text)
    ids = [f"{number:x}" for number in source.sample(range(10 * rows), rows)]
    sites = [source.choice([None, "a", "b"]) for _ in range(rows)]
    return pa.table({"id": ids, "text": pa.array(texts, pa.string()), "site": pa.array(sites, pa.string())})


def filled_forms(tmp_path):
    """A table of notices with repeats and other texts, and the file of a table of forms for it."""
    frame = [
        "The harbour office says that on",
        "the ferry to the islands leaves at",
        "from the northern quay, and not from the pier at the lighthouse as usual: tickets are sold on board.",
    ]
    texts = [f"{frame[0]} day{at} {frame[1]} {at % 24}.{at % 60} {frame[2]}" for at in range(120)]
    texts += [f"Read this! {text}" for text in texts[::10]] + [text.upper() for text in texts[5::10]]
    texts += ["A captain said something else, which no notice of the office says."]
    ids = [f"{at:04}" for at in range(len(texts))]
    parts = ", ".join(f'"{part}"' for part in frame)
    forms = tmp_path / "forms.toml"
    forms.write_text(f'lookalike_forms = 1\n[[form]]\nname = "notice"\nframe = [{parts}]\n')
    return pa.table({"id": ids, "text": texts}), forms
