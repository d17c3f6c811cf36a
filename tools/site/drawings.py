#!/usr/bin/env python3
"""Draws the pictures of docs/guide/how-it-works.md as SVG, in English and Chinese, into docs/images/.

Every number in them is computed here: votes and sums, blocks, the S-curve, verdicts. `--check` draws nothing and fails if
a file in docs/images/ is not what would be drawn.
"""

import pathlib
import sys
from html import escape

IMAGES = pathlib.Path(__file__).resolve().parents[2] / "docs/images"

INK, GREY, LINE = "#1f2933", "#616e7c", "#cbd2d9"
BLUE, PALE_BLUE = "#1d5fa8", "#dcebfa"
RED, PALE_RED = "#b42318", "#fde4e1"
GREEN, PALE_GREEN = "#1a7f4b", "#dcf3e6"
FONT = "system-ui, 'Segoe UI', 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', Consolas, monospace"


class Drawing:
    """An SVG picture of fixed size on a white ground, so that it is legible on light and on dark pages."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.parts = []

    def text(self, x, y, text, size=14, colour=INK, anchor="start", mono=False, bold=False):
        font = MONO if mono else FONT
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-family="{escape(font)}" font-size="{size}" fill="{colour}" '
            f'text-anchor="{anchor}"{weight}>{escape(str(text))}</text>'
        )

    def box(self, x, y, width, height, fill="#ffffff", stroke=LINE, radius=4):
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}" fill="{fill}" stroke="{stroke}"/>'
        )

    def line(self, x1, y1, x2, y2, colour=LINE, width=1, dashed=False, arrow=False):
        dash = ' stroke-dasharray="4 4"' if dashed else ""
        head = ' marker-end="url(#arrow)"' if arrow else ""
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{width}"{dash}{head}/>'
        )

    def curve(self, points, colour=BLUE):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')

    def svg(self):
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img">\n<title>{escape(self.title)}</title>\n'
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0,0 L8,4 L0,8 z" fill="{GREY}"/></marker></defs>\n'
            f'<rect width="{self.width}" height="{self.height}" rx="8" fill="#ffffff"/>\n'
        )
        return head + "\n".join(self.parts) + "\n</svg>\n"


def draw_simhash(words):
    """Two features with 6-bit hashes vote; these are the numbers of `lookalike fingerprint --hashes` in the guide."""
    drawing = Drawing(720, 330, words["title"])
    features = [("CSDN", "100101", 4), ("博客", "101011", 5)]
    left, cell = 250, 64
    for column, heading in ((40, words["feature"]), (120, words["weight"]), (178, words["hash"])):
        drawing.text(column, 40, heading, 13, GREY)
    drawing.text(left + 3 * cell, 40, words["votes"], 13, GREY, "middle")
    sums = [0] * 6
    for row, (name, bits, weight) in enumerate(features):
        y = 56 + row * 50
        drawing.text(40, y + 26, name, 16, bold=True)
        drawing.text(136, y + 26, weight, 16, anchor="middle")
        drawing.text(172, y + 26, bits, 15, GREY, mono=True)
        for position, bit in enumerate(bits):
            vote = weight if bit == "1" else -weight
            sums[position] += vote
            drawing.box(left + position * cell + 3, y, cell - 6, 38, PALE_BLUE if vote > 0 else PALE_RED)
            drawing.text(left + position * cell + cell / 2, y + 25, f"{vote:+d}", 16, BLUE if vote > 0 else RED, "middle")
    y = 178
    drawing.line(40, y - 12, left + 6 * cell, y - 12)
    drawing.text(40, y + 24, words["sum"], 16, bold=True)
    for position, total in enumerate(sums):
        drawing.text(left + position * cell + cell / 2, y + 24, f"{total:+d}", 18, BLUE if total > 0 else RED, "middle", bold=True)
        drawing.line(left + position * cell + cell / 2, y + 34, left + position * cell + cell / 2, y + 58, GREY, arrow=True)
    y = 240
    drawing.text(40, y + 28, words["fingerprint"], 16, bold=True)
    for position, total in enumerate(sums):
        drawing.box(left + position * cell + 3, y, cell - 6, 42, PALE_BLUE if total > 0 else "#f5f7fa")
        drawing.text(left + position * cell + cell / 2, y + 29, int(total > 0), 20, anchor="middle", mono=True, bold=True)
    drawing.text(40, 312, words["note"], 13, GREY)
    return drawing


def draw_pigeonhole(words):
    """Two fingerprints of 64 bits that differ in three bits, in four blocks of 16."""
    drawing = Drawing(720, 250, words["title"])
    first = "1000010010101101" "1111111000001010" "1101000100111110" "0001001011001011"
    second = "1000010010101101" "0111111000001010" "1101000100111110" "0001101010001011"
    left, block = 50, 160
    for row, (name, bits) in enumerate((("A", first), ("B", second))):
        y = 60 + row * 54
        drawing.text(22, y + 26, name, 16, bold=True)
        for number in range(4):
            part = slice(number * 16, number * 16 + 16)
            equal = first[part] == second[part]
            drawing.box(left + number * block + 4, y, block - 8, 38, PALE_GREEN if equal else "#f5f7fa")
            for at in range(16):
                differs = first[part][at] != second[part][at]
                x = left + number * block + 13 + at * 9
                if differs:
                    drawing.box(x - 5, y + 7, 10, 24, PALE_RED, RED, 2)
                drawing.text(x, y + 25, bits[part][at], 14, RED if differs else INK, "middle", True, differs)
    for number in range(4):
        part = slice(number * 16, number * 16 + 16)
        count = sum(a != b for a, b in zip(first[part], second[part]))
        x = left + number * block + block / 2
        drawing.text(x, 44, words["block"].format(number + 1), 13, GREY, "middle")
        label = words["equal"] if count == 0 else words["differ"][count - 1]
        drawing.text(x, 190, label, 14, GREEN if count == 0 else RED, "middle", bold=count == 0)
    drawing.text(22, 228, words["note"], 13, GREY)
    return drawing


def draw_bands(words):
    """The probability that a pair shares a band: 25 bands of 5 rows, the plan of the default recipe and threshold."""
    drawing = Drawing(720, 380, words["title"])
    bands, rows, threshold = 25, 5, 0.75
    left, top, width, height = 80, 40, 600, 260

    def place(similarity, probability):
        return left + similarity * width, top + (1 - probability) * height

    for step in range(6):
        share = step / 5
        x, y = place(share, share)
        drawing.line(left, y, left + width, y)
        drawing.text(left - 10, y + 5, f"{share:.1f}", 13, GREY, "end")
        drawing.text(x, top + height + 22, f"{share:.1f}", 13, GREY, "middle")
    drawing.text(left + width / 2, top + height + 46, words["similarity"], 14, anchor="middle")
    drawing.text(left, 24, words["probability"], 14)
    x, y = place(threshold, 1 - (1 - threshold**rows) ** bands)
    drawing.line(x, top, x, top + height, RED, 1.5, dashed=True)
    drawing.curve([place(at / 200, 1 - (1 - (at / 200) ** rows) ** bands) for at in range(201)])
    drawing.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{RED}"/>')
    recall = 1 - (1 - threshold**rows) ** bands
    drawing.text(x + 12, y + 36, words["threshold"].format(threshold, recall), 14, RED)
    drawing.text(left + 20, top + 30, words["plan"].format(bands, rows), 14, BLUE)
    drawing.text(left, 370, words["note"], 13, GREY)
    return drawing


def draw_verdicts(words):
    """Five documents in order; a document is kept if no kept document before it matches it."""
    drawing = Drawing(720, 330, words["title"])
    # Index of the kept document that each one names, and the similarity.
    documents = [None, (0, 0.91), None, (0, 0.78), (2, 0.83)]
    width = 112
    centre = [36 + number * 136 + width / 2 for number in range(5)]
    for number, found in enumerate(documents):
        x = centre[number] - width / 2
        drawing.box(x, 110, width, 64, PALE_GREEN if found is None else PALE_RED, GREEN if found is None else RED)
        drawing.text(centre[number], 137, words["document"].format("ABCDE"[number]), 15, anchor="middle", bold=True)
        verdict = words["kept"] if found is None else words["removed"]
        drawing.text(centre[number], 160, verdict, 14, GREEN if found is None else RED, "middle")
        if found is not None:
            start, end = centre[number], centre[found[0]]
            lift = 96 - 22 * (number - found[0] - 1)
            drawing.parts.append(
                f'<path d="M{start:g},106 C{start:g},{lift - 30} {end:g},{lift - 30} {end:g},106" fill="none" '
                f'stroke="{GREY}" stroke-width="1.5" marker-end="url(#arrow)"/>'
            )
            drawing.text((start + end) / 2, lift - 19, f"{found[1]:.2f}", 13, GREY, "middle")
    drawing.line(36, 200, 684, 200, GREY, 1.5, arrow=True)
    drawing.text(684, 220, words["order"], 13, GREY, "end")
    drawing.text(36, 254, words["cluster"].format("A", "A, B, D"), 15)
    drawing.text(36, 278, words["cluster"].format("C", "C, E"), 15)
    drawing.text(36, 312, words["note"], 13, GREY)
    return drawing


ENGLISH = {
    "simhash": {
        "title": "SimHash: two features vote for the bits of a fingerprint",
        "feature": "feature", "weight": "weight", "hash": "hash", "votes": "votes: + weight for a 1, − weight for a 0",
        "sum": "sum of the votes", "fingerprint": "fingerprint",
        "note": "A sum above 0 gives the bit 1, another sum gives 0. The numbers are those of “SimHash step by step”.",
    },
    "pigeonhole": {
        "title": "Pigeonhole principle: three differing bits leave one of four blocks equal",
        "block": "block {}", "equal": "equal: found by this block", "differ": ["1 bit differs", "2 bits differ"],
        "note": "3 differing bits lie in at most 3 of 4 blocks: one block is always equal, so none is missed.",
    },
    "bands": {
        "title": "MinHash bands: the S-curve",
        "similarity": "similarity of the pair (Jaccard)", "probability": "probability that the pair shares a band",
        "threshold": "threshold {}: {:.4f}", "plan": "{} bands of {} rows: 1 − (1 − s^5)^25",
        "note": "Pairs below the threshold are rejected later, so they cost time and change no result.",
    },
    "verdicts": {
        "title": "Verdicts: each removed document names the kept one that it is most similar to",
        "document": "document {}", "kept": "kept", "removed": "removed", "order": "order of the documents",
        "cluster": "cluster {}: documents {}",
        "note": "A document is removed only if it matches a kept one (≥ 0.75), so matches never chain.",
    },
}
CHINESE = {
    "simhash": {
        "title": "SimHash：两个特征为指纹的各位投票",
        "feature": "特征", "weight": "权重", "hash": "哈希", "votes": "加权：该位为 1 加权重，为 0 减权重",
        "sum": "合并（求和）", "fingerprint": "降维（指纹）",
        "note": "和大于 0，该位为 1，否则为 0。这里的数字与“逐步计算 SimHash”一页相同。",
    },
    "pigeonhole": {
        "title": "鸽巢原理（抽屉原理）：三位不同，四块中必有一块相同",
        "block": "第 {} 块", "equal": "相同：凭此块找到", "differ": ["1 位不同", "2 位不同"],
        "note": "3 个不同的位最多落在 4 块中的 3 块，所以总有一块完全相同，距离之内的指纹一个也不会漏。",
    },
    "bands": {
        "title": "MinHash 分段：S 曲线",
        "similarity": "这对文档的相似度（Jaccard）", "probability": "至少有一段相同的概率",
        "threshold": "阈值 {}：{:.4f}", "plan": "{} 段，每段 {} 行：1 − (1 − s^5)^25",
        "note": "低于阈值的文档对随后会被排除：只花时间，不影响结果。",
    },
    "verdicts": {
        "title": "判定：每篇被删除的文档都指出与它最相似的保留文档",
        "document": "文档 {}", "kept": "保留", "removed": "删除", "order": "文档的次序",
        "cluster": "簇 {}：文档 {}",
        "note": "只有与某篇“保留”的文档匹配（≥ 0.75）才会被删除，所以匹配不会像链条一样传递。",
    },
}


def main():
    drawers = {"simhash": draw_simhash, "pigeonhole": draw_pigeonhole, "bands": draw_bands, "verdicts": draw_verdicts}
    stale = []
    for suffix, catalogue in (("en", ENGLISH), ("zh", CHINESE)):
        for name, draw in drawers.items():
            path, svg = IMAGES / f"{name}-{suffix}.svg", draw(catalogue[name]).svg()
            if "--check" not in sys.argv:
                path.write_text(svg, encoding="utf-8")
            elif not path.exists() or path.read_text(encoding="utf-8") != svg:
                stale.append(path.name)
    if stale:
        sys.exit(f"docs/images/ is out of date ({', '.join(stale)}): run tools/site/drawings.py")


if __name__ == "__main__":
    main()
