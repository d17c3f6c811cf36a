"""Made corpora, and files of the repository."""

import json
import random
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def made_documents(count, seed=1):
    """Documents of which every third is an edited copy of one before, in two scripts, some poor."""
    source = random.Random(seed)
    words = [f"{a}{b}" for a in ("ka", "lo", "mi", "ren", "sta", "tu") for b in ("ba", "do", "fen", "gri", "l", "m")]
    han = "渡船七点离开岛上没有人会错过它清晨老长已经把缆绳解了"
    documents = []
    for number in range(count):
        kind = source.random()
        if documents and kind < 0.33:
            text = source.choice(documents)["text"]
            for _ in range(source.randrange(4)):
                at = source.randrange(len(text) + 1)
                text = text[:at] + source.choice([" ", "x ", "!", "岛"]) + text[at:]
        elif kind < 0.4:
            text = source.choice(["", " ", "!?", "a", "渡", "😀"])
        elif kind < 0.6:
            text = "".join(source.choice(han) for _ in range(source.randrange(5, 200)))
        else:
            text = " ".join(source.choice(words) for _ in range(source.randrange(3, 300)))
        documents.append(
            {
                "id": f"d{number}",
                "text": text,
                "source": source.choice(["a", "b"]),
                "score": source.randrange(10),
                "at": 1_700_000_000 + source.randrange(400_000),
            }
        )
    return documents


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def blocks_of(page, language):
    """The code blocks of a page in a language, without those that show a dialogue with Python."""
    blocks = (ROOT / page).read_text(encoding="utf-8").split("```")[1::2]
    named = [block.removeprefix(f"{language}\n") for block in blocks if block.startswith(f"{language}\n")]
    return [block for block in named if not block.startswith(">>>")]


def read_jsonl(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
