"""Writes yanyiwu.jsonl: texts of the project's own making from a seed, and what a program made of
yanyiwu.cpp says of them.

    python yanyiwu.py PROGRAM
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
MOST = "-3.14e+100"
TABLES = {
    "dictionary": "渡口 40 n\n渡口边 2 s\n边上 9 f\n清早 25 t\n老船 12 n\n船 30 n\n的 400 uj\nA-B 3 nz\n"
    "我们 90 r\n今天 60 t\n今天早上 5 t\n早上 33 t\n天早 1 n\n大雾 7 n\n雾 11 n\n江面 6 n\n江面上 4 s\n",
    "hmm": "\n".join(
        [
            f"-0.2 {MOST} {MOST} -1.5",
            f"{MOST} -0.5 -0.9 {MOST}",
            f"-0.6 {MOST} {MOST} -0.8",
            f"{MOST} -0.3 -1.2 {MOST}",
            f"-0.7 {MOST} {MOST} -0.6",
            "阿:-1,蛮:-7,呀:-9,江:-3,雾:-4",
            "阿:-8,蛮:-1,呀:-9,江:-5,雾:-2",
            "阿:-8,蛮:-4,呀:-9,江:-4,雾:-5",
            "阿:-5,蛮:-5,呀:-1,江:-6,雾:-3",
            "",
        ]
    ),
    "idf": "渡口 2\n清早 4\n老船 8\n阿蛮 6\n今天 1.25\n早上 3.0625\n大雾 7.5\n江面上 9.125\nabc 5.5\n",
    "stopwords": "我们\n,\n呢\n",
}
PIECES = (
    "渡口 渡口边 边上 清早 老船 船 的 我们 今天 今天早上 早上 大雾 雾 江面 江面上 阿 蛮 呀 阿蛮 江 没有 天 "
    "abc A-B ab1c 3.14 15 x 5G word straße ひらがな 한국 🙂 𠮷 é ， 。 、 , . - ？ ！"
).split() + [" ", "\u3000", "\t"]


def texts(count):
    chance = random.Random(4)
    yield from ["", "船", "渡口边上", "今天早上", "你好世界"]
    for at in range(count - 5):
        pieces = chance.randrange(1, [6, 20, 60, 400][at % 4])
        yield "".join(chance.choices(PIECES, k=pieces))


def main(program):
    lines = list(texts(1000))
    with tempfile.TemporaryDirectory() as place:
        paths = []
        for name, table in TABLES.items():
            paths.append(Path(place, name))
            paths[-1].write_text(table, encoding="utf-8")
        prints = {}
        for name, top in [("top-2", ["2"]), ("top-5", ["5"]), ("top", [])]:
            asked = subprocess.run(
                [program, *paths, *top], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
            )
            prints[name] = asked.stdout.split()
            assert len(prints[name]) == len(lines)
    with Path(HERE, "yanyiwu.jsonl").open("w", encoding="utf-8") as out:
        rows = [TABLES] + [
            {"text": text, **{name: found[at] for name, found in prints.items()}}
            for at, text in enumerate(lines)
        ]
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


main(sys.argv[1])
