"""Writes vectors.jsonl: what other tools make of texts that this program makes from a seed.

    python3.11 -m venv venv
    venv/bin/pip install --requirement requirements.txt
    venv/bin/pip install --no-deps --target venv/seomoz simhash-pybind==0.0.3
    venv/bin/python generate.py            # write the file
    venv/bin/python generate.py --check    # fail if it is not what would be written

The packages themselves are asked where there are packages. The Python 2 script and the Java class are
said again here, in the plainest way, and held to their published values.
"""

import hashlib
import importlib.util
import json
import pathlib
import random
import re
import sys
import unicodedata

import numpy
from datasketch import MinHash
from simhash import Simhash

HERE = pathlib.Path(__file__).resolve().parent
FILE = HERE / "vectors.jsonl"
RANDOM = 1100
FULL = 12  # texts whose signatures stand in the file as they are


# ---- texts ---------------------------------------------------------------------------------------

SPECIAL = [
    "",
    " ",
    "\t\r\n\f\v\x1c\x1d\x1e\x1f\x85\xa0\u1680\u180e\u2003\u2028\u202f\u205f\u3000",
    "a",
    "é",
    "漢",
    "😀",
    "!?…",
    "ab",
    "abc",
    "abcd",
    "abcde",
    "a b c d",
    "How are you? I AM fine. Thanks. And you?",
    "你好\u3000世界！\u3000\u3000呼噜。",
    "the cat sat on the mat",
    "the cat sat on a mat",
    "we all scream for ice cream",
    "This is a test string for testing",
    "你妈妈喊你回家吃饭哦，回家罗回家罗",
    "你妈妈叫你回家吃饭啦，回家罗回家罗",
    "İstanbul İİ ıI I\u0307 i\u0307",
    "ΣΑΣ ΟΔΟΣ. Σ ΑΣ' 'ΣΑ ΑΣ\u0301 ΑΣ\u0301Α ʰΣ Α:Σ:Α Σ.",
    "STRASSE straße STRAẞE ﬁ ﬀ",
    "½ ² ① Ⅷ ⅷ ٣ ߀ _ __ a_b ー ・ ゛ 〇 々",
    "मा का हिंदी भाषा நன்றி ภาษาไทย ខ្មែរ မြန်မာ བོད་ཡིག",
    "e\u0301 é n\u0303 a\u030a \u0301\u0301",
    "👩\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 🇩🇪 👍🏽",
    "a\u200bb\u200cc\u200dd\ufeffe\u00adf",
    "ａｂｃ ＡＢＣ １２３ ｱｲｳ ﾊﾟ",
    "𝐀𝐁𝐂 𝔘𝔫𝔦 𐐀𐐁 𞤀𞤁 𠀀𠀁𠀂𠀃𠀄 🄀 𝟘𝟙",
    "Ǆ ǅ ǆ Ꭰ ꭰ Ა ა Ⴀ ⴀ ᲀ Ω K Å ẞ Ȿ Ⱥ Ꞌ Ɡ",
    "\x00\x01\x7f a\x00b",
    "a\u180eb\x1cc\x85d e\u2028f",
    "aaaa",
    "a" * 300,
    "ab" * 2000,
    "漢字" * 500,
    "x" * 55 + " " + "y" * 56 + " " + "z" * 63 + " " + "w" * 64 + " " + "v" * 65 + " " + "u" * 119 + " " + "t" * 120,
]

SYLLABLES = "ka lo mi ne tu sa ri vo pe du gra stu lin tor bel ash und ing tion er".split()
BLOCKS = [
    (0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x36F), (0x370, 0x3FF), (0x400, 0x52F), (0x530, 0x5FF),
    (0x600, 0x6FF), (0x900, 0xDFF), (0xE00, 0x109F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x13A0, 0x13FF),
    (0x1C80, 0x1CBF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2100, 0x218F), (0x2460, 0x24FF), (0x2C00, 0x2DFF),
    (0x3000, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0x9FB0, 0x9FFF), (0xA640, 0xA7FF), (0xAB30, 0xABBF),
    (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0xF900, 0xFFFF), (0x10000, 0x107FF), (0x10400, 0x104FF),
    (0x10C80, 0x10CFF), (0x11000, 0x118FF), (0x16E40, 0x16E9F), (0x1D400, 0x1D7FF), (0x1E900, 0x1E95F),
    (0x1F000, 0x1FAFF), (0x20000, 0x323AF), (0xE0000, 0xE01EF), (0x0, 0x10FFFF),
]  # fmt: skip
HAN = [chr(point) for point in range(0x4E00, 0x4E00 + 3000)]


def character(draw, low, high):
    while True:
        point = draw.randint(low, high)
        if not 0xD800 <= point <= 0xDFFF:
            return chr(point)


def english(draw, words):
    vocabulary = ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 4))) for _ in range(80)]
    text = []
    for at in range(words):
        word = draw.choice(vocabulary)
        text.append(word.capitalize() if at % 9 == 0 else word)
        text.append(draw.choice([" ", " ", " ", ", ", ". ", "\n", " - ", "'s "]))
    return "".join(text)


def chinese(draw, length):
    return "".join(draw.choices(HAN, k=length)) if length < 9 else "".join(
        draw.choice(HAN) + draw.choice(["", "", "", "，", "。", "的", "的"]) for _ in range(length)
    )


def scripts(draw, length):
    blocks = draw.choices(BLOCKS, k=draw.randint(1, 3))
    parts = [character(draw, *draw.choice(blocks)) for _ in range(length)]
    return "".join(part + draw.choice(["", "", "", " "]) for part in parts)


def texts():
    draw = random.Random(20)
    made = list(SPECIAL)
    for number in range(RANDOM):
        length = draw.choice([1, 2, 3, 4, 5, 7, 10, 20, 40]) if number % 40 else 400
        made.append(draw.choice([english, chinese, scripts, scripts])(draw, length))
    made.append(english(draw, 4000))
    made.append(scripts(draw, 6000))
    return made


# ---- the packages --------------------------------------------------------------------------------


def load_seomoz():
    """The package of the `seomoz` scheme, which is named `simhash` too and so stands apart."""
    folder = pathlib.Path(sys.prefix) / "seomoz" / "simhash"
    spec = importlib.util.spec_from_file_location(
        "seomoz", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["seomoz"] = module
    spec.loader.exec_module(module)
    return module


def e0ng(text, f=64):
    return Simhash(text, f=f).value


def seomoz(text):
    words = re.findall(r"\w+", text.lower())
    return seomoz_features([" ".join(window) for window in moz.shingle(words, 4)])


def seomoz_features(features):
    return moz.compute([moz.unsigned_hash(feature.encode()) for feature in features])


def signature(tokens, scheme, seed, slots=128):
    sketch = MinHash(num_perm=slots, seed=seed, scheme=scheme)
    if tokens:
        sketch.update_batch([token.encode() for token in tokens])
    return [int(value) for value in sketch.hashvalues]


# ---- what has no package -------------------------------------------------------------------------

PYTHON_2_SPACE = "".join(
    map(
        chr,
        [*range(0x09, 0x0E), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680, 0x180E, *range(0x2000, 0x200B), 0x2028, 0x2029,
         0x202F, 0x205F, 0x3000],
    )
)  # fmt: skip


def news_md5(text, f=64):
    tokens = [token for token in re.split(f"[{re.escape(PYTHON_2_SPACE)}]", text) if token]
    votes = [0] * f
    for token in tokens:
        number = int(hashlib.md5(token.encode()).hexdigest(), 16)
        for at in range(f):
            votes[at] += 1 if number & (1 << (at + 32)) else -1
    return sum(1 << at for at in range(f) if votes[at] >= 0)


def java_hash(token, bits):
    units = token.encode("utf-16-be")
    units = [units[at] << 8 | units[at + 1] for at in range(0, len(units), 2)]
    if not units:
        return 0
    value = units[0] << 7
    for unit in units:
        value = (value * 1000003 ^ unit) & (1 << bits) - 1
    return value ^ len(units)


def java_classic(text, bits=64):
    votes = [0] * bits
    for token in re.split("[ \t\n\r\f]", text):
        if token:
            number = java_hash(token, bits)
            for at in range(bits):
                votes[at] += 1 if number >> at & 1 else -1
    return sum(1 << at for at in range(bits) if votes[at] >= 0)


def check_published():
    assert e0ng("") == 0xE9800998ECF8427E
    assert Simhash([]).value == 0
    assert Simhash(["aaa", "bbb"]).value == 57087923692560392
    assert e0ng("How are you? I AM fine. Thanks. And you?") == 0xBFF3CD8A201E681A
    assert e0ng("你好\u3000世界！\u3000\u3000呼噜。") == 0xDB8C51C7172EA364
    assert news_md5("") == java_classic("") == 2**64 - 1
    assert news_md5("the cat sat on the mat") == 0xDFF9E69F3A2DEAFF
    assert java_classic("the cat sat on the mat") == 0xFABBFF6B39CFADFF
    assert java_classic("This is a test string for testing") == 0x800D8E90E45CC488


# ---- the file ------------------------------------------------------------------------------------


def digest(values):
    """The first half of the MD5 of the values as little-endian words of 32 bits."""
    return hashlib.md5(numpy.array(values, dtype="<u4").tobytes()).hexdigest()[:16]


def vector(number, text):
    tokens = text.split()
    shown = list if number % 3 == 0 and number < 3 * FULL else digest
    line = {
        "text": text,
        "1e0ng": f"{e0ng(text):016x}",
        "seomoz": f"{seomoz(text):016x}",
        "news-md5": f"{news_md5(text):016x}",
        "java-classic": f"{java_classic(text):016x}",
    }
    for scheme in ["legacy", "affine32"]:
        for seed in [1, 42]:
            line[f"datasketch-{scheme}-{seed}"] = shown(signature(tokens, scheme, seed))
    if number % 10 == 0:
        line["1e0ng-128"] = f"{e0ng(text, 128):032x}"
        line["1e0ng-8"] = f"{e0ng(text, 8):02x}"
        line["news-md5-96"] = f"{news_md5(text, 96):024x}"
        line["java-classic-128"] = f"{java_classic(text, 128):032x}"
        for scheme in ["legacy", "affine32"]:
            line[f"datasketch-{scheme}-1-1024"] = digest(signature(tokens, scheme, 1, 1024))
            line[f"datasketch-{scheme}-4294967295-16"] = digest(signature(tokens, scheme, 2**32 - 1, 16))
    return line


def features():
    """Features that a caller has cut out, some with weights."""
    draw = random.Random(21)
    lists = [[], ["aaa", "bbb"], ["a"], [""], ["a", "a", "b"], ["漢字", "é", "😀"]]
    for _ in range(60):
        words = english(draw, draw.randint(1, 30)).split() + [chinese(draw, 3)]
        lists.append(draw.choices(words, k=draw.randint(1, 60)))
    for features in lists:
        weights = [draw.choice([1, 1, 2, 3, 50, 51, 255, 256, 1000, 0.5, 2.25]) for _ in features]
        yield {
            "features": features,
            "weights": weights,
            "1e0ng": f"{Simhash(features).value:016x}",
            "1e0ng-weighted": f"{Simhash(list(zip(features, weights))).value:016x}",
            "seomoz": f"{seomoz_features(features):016x}",
            "datasketch-legacy-1": digest(signature(features, "legacy", 1)),
            "datasketch-affine32-1": digest(signature(features, "affine32", 1)),
        }


def lines():
    check_published()
    rows = [vector(number, text) for number, text in enumerate(texts())] + list(features())
    return "".join(json.dumps(row, ensure_ascii=True, separators=(",", ":")) + "\n" for row in rows)


def main():
    if sys.version_info[:2] != (3, 11) or unicodedata.unidata_version != "14.0.0":
        sys.exit("the vectors are those of Python 3.11")
    made = lines()
    if sys.argv[1:] == ["--check"]:
        if FILE.read_text() != made:
            sys.exit(f"{FILE.name} is not what the packages make")
    elif sys.argv[1:]:
        sys.exit("the only option is --check")
    else:
        FILE.write_text(made)


moz = load_seomoz()
main()
