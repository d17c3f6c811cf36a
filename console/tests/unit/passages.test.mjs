// The picture and the table of a report of passages.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createServer } from "vite";

let server;
const load = (path) => server.ssrLoadModule(`/src/${path}`);
before(async () => {
  server = await createServer({ configFile: false, logLevel: "error", server: { middlewareMode: true, ws: false }, appType: "custom" });
});
after(() => server.close());

const edges = [[0, 1, 0.9], [1, 2, 0.4], [3, 4, 0.2], [5, 6, 0.1]];

test("a threshold leaves edges out, and groups fall apart", async () => {
  const { findGroups, visibleEdges } = await load("passages/class-graph.ts");
  const groups = (threshold) => findGroups(8, visibleEdges(edges, threshold));
  assert.deepEqual(groups(0), [[0, 1, 2], [3, 4], [5, 6]]);
  assert.deepEqual(groups(0.2), [[0, 1, 2], [3, 4]]);
  assert.deepEqual(groups(0.41), [[0, 1]]);
  assert.deepEqual(groups(0.91), []);
});

test("places lie in the picture, apart from each other, and are the same each time", async () => {
  const { findGroups, placeGroups } = await load("passages/class-graph.ts");
  const many = Array.from({ length: 60 }, (_, at) => [at, (at * 7 + 1) % 60, 0.5]).filter(([a, b]) => a !== b);
  for (const width of [220, 640]) {
    for (const all of [edges, many, [[0, 1, 1]]]) {
      const groups = findGroups(60, all);
      const placed = placeGroups(groups, all, width);
      assert.deepEqual(placed, placeGroups(groups, all, width));
      const places = placed.groups.flatMap((group) => group.places);
      assert.equal(places.length, groups.flat().length);
      places.forEach(([x, y], at) => {
        assert.ok(x >= 0 && x <= width && y >= 0 && y <= placed.height, `${x} ${y}`);
        for (const [otherX, otherY] of places.slice(at + 1)) assert.ok(Math.hypot(x - otherX, y - otherY) > 1);
      });
    }
  }
});

test("documents that share more stand nearer", async () => {
  const { layOutGroup } = await load("passages/class-graph.ts");
  const places = layOutGroup([0, 1, 2, 3], [[0, 1, 1], [1, 2, 1], [0, 2, 1], [2, 3, 0.05]]);
  const far = (a, b) => Math.hypot(places[a][0] - places[b][0], places[a][1] - places[b][1]);
  assert.ok(far(0, 1) < far(0, 3) && far(1, 2) < far(1, 3));
});

test("many edges begin with the largest", async () => {
  const { findThreshold } = await load("passages/overview.tsx");
  const shares = (count) => Array.from({ length: count }, (_, at) => [at, at + 1, at / count]);
  assert.equal(findThreshold(shares(40), 5), 0);
  assert.equal(findThreshold(shares(200), 150), 0);
  const all = shares(1000);
  const shown = all.filter(([, , share]) => share >= findThreshold(all, 120) / 100).length;
  assert.ok(shown <= 180 && shown > 150, `${shown}`);
});

const data = (directed) => ({
  summary: { directed },
  pairs: {
    document: ["b,1", "c"], source: ["a", '=HYPERLINK("x")'], passages: [1, 2], copied: [30, 40], reworded: [0, 8], longest: [30, 25],
    unit: ["words", "characters"], share: [0.5, 0.25], source_share: [0.4, 0.75],
  },
});

test("names that would overlap are left out, those that matter most last", async () => {
  const { chooseLabels } = await load("passages/overview.tsx");
  const at = (member, label, x, y) => ({ member, label, x, y });
  assert.deepEqual([...chooseLabels([at(7, "first.txt", 100, 50), at(1, "near.txt", 110, 55), at(2, "below.txt", 110, 64), at(3, "beside", 190, 50)])], [7, 2, 3]);
  assert.deepEqual([...chooseLabels([at(1, "李军李军", 100, 50), at(2, "x", 122, 50), at(3, "y", 130, 50)])], [1, 3]);
});

test("names stand without the folder that all have", async () => {
  const { shortenNames } = await load("passages/overview.tsx");
  assert.deepEqual(shortenNames(["in/class/a.txt", "in/class/b.txt"]), ["a.txt", "b.txt"]);
  assert.deepEqual(shortenNames(["in/class/a.txt", "in/club/b.txt"]), ["class/a.txt", "club/b.txt"]);
  assert.deepEqual(shortenNames(["in/a.txt", "b.txt"]), ["in/a.txt", "b.txt"]);
  assert.deepEqual(shortenNames(["a/b", "a"]), ["a/b", "a"]);
  assert.deepEqual(shortenNames([]), []);
});

test("the table has every pair, and no spreadsheet runs a name", async () => {
  const { writePairs } = await load("passages/pair-table.ts");
  const lines = writePairs(data(false), (name) => name).split("\r\n");
  assert.equal(lines[0], "\ufeffdocument,other_document,passages,length,reworded,longest,unit,share_of_document,share_of_other_document");
  assert.equal(lines[1], '"b,1",a,1,30,0,30,words,0.5,0.4');
  assert.equal(lines[2], `c,"'=HYPERLINK(""x"")",2,40,8,25,characters,0.25,0.75`);
  assert.equal(lines[3], "");
  assert.match(writePairs(data(true), (name) => name), /^\ufeffdocument,source,/);
  const hidden = writePairs(data(false), (name) => `Document ${name.length}`);
  assert.ok(!hidden.includes("HYPERLINK") && hidden.includes("Document 3,Document 1"), hidden);
});

test("no cell of the table begins as a formula does, in any width and behind what cannot be seen", async () => {
  const { writeField } = await load("passages/pair-table.ts");
  for (const sign of ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "﹢", "﹣", "﹫", "−", "\t", "\t=", " =", "\u00a0+", "\u3000＝", "\u200b=", "\ufeff@"]) {
    assert.equal(writeField(`${sign}1`), `'${sign}1`, JSON.stringify(sign));
  }
  for (const sign of ["\r", "\n", "\r=", "\r\n＝"]) assert.equal(writeField(`${sign}1`), `"'${sign}1"`, JSON.stringify(sign));
  for (const plain of ["a=1", "学生＝1", "1-2", "", " ", "x@y", "'=1"]) assert.equal(writeField(plain), plain);
  // A number is one in the table.
  assert.equal(writeField(-0.5), "-0.5");
});

test("edges have the larger share of a pair, and documents that share most come first", async () => {
  const { listEdges } = await load("passages/page.tsx");
  const { names, edges: found } = listEdges(data(false).pairs);
  assert.deepEqual(names, ['=HYPERLINK("x")', "c", "a", "b,1"]);
  assert.deepEqual(found, [[3, 2, 0.5], [1, 0, 0.75]]);
});

const encoded = (text) => new TextEncoder().encode(text);

test("a table is read with its separator, its quotes and its encoding", async () => {
  const { parseTable, readNameTable } = await load("passages/name-table.ts");
  assert.deepEqual(parseTable('\ufefffile,name\r\n"a,1","said ""no""\nand left"\r\n\r\nb,\n'), [["file", "name"], ["a,1", 'said "no"\nand left'], ["b", ""]]);
  assert.deepEqual(parseTable("file;name\na;Li, Jun"), [["file", "name"], ["a", "Li, Jun"]]);
  assert.deepEqual(parseTable("file\tname\na\tb"), [["file", "name"], ["a", "b"]]);
  assert.deepEqual(parseTable(""), []);
  const chinese = "文件名,姓名,班级,时间\nann.txt,李军,三班,2026-01-02\n";
  const row = { name: "李军", group: "三班", time: "2026-01-02" };
  assert.deepEqual(readNameTable(encoded(chinese), ["ann.txt"]).documents.get("ann.txt"), row);
  // "文件名,姓名" and "a.txt,李" as GB18030, which spreadsheets in China write.
  const old = new Uint8Array([0xce, 0xc4, 0xbc, 0xfe, 0xc3, 0xfb, 0x2c, 0xd0, 0xd5, 0xc3, 0xfb, 0x0a, 0x61, 0x2e, 0x74, 0x78, 0x74, 0x2c, 0xc0, 0xee]);
  assert.deepEqual(readNameTable(old, ["a.txt"]).documents.get("a.txt"), { name: "李", group: "", time: "" });
  assert.equal(readNameTable(encoded("name,label\na,b"), ["a"]), "columns");
  assert.equal(readNameTable(encoded("filename\na"), ["a"]), "columns");
  assert.equal(readNameTable(new Uint8Array([0xff]), ["a"]), "encoding");
});

test("a row finds the document of its name or of the end of its path, and none where there are two", async () => {
  const { readNameTable } = await load("passages/name-table.ts");
  const names = ["in/one/ann.txt", "in/two/ann.txt", "in/ben.docx", "cem.txt", "in/cem.txt"];
  const found = (file) => [...readNameTable(encoded(`filename,label\n${file},x`), names).documents.keys()];
  for (const [file, document] of [["in/one/ann.txt", 0], ["two/ann.txt", 1], ["./two\\ann.txt", 1], ["ben.docx", 2], ["ben", 2], ["cem.txt", 3], ["in/cem", 4]]) {
    assert.deepEqual(found(file), [names[document]], file);
  }
  for (const file of ["ann.txt", "ann", "cem", "dia.txt", ""]) assert.deepEqual(found(file), [], file);
  const { unknown, groups } = readNameTable(encoded("filename,label\nann.txt,b\nben,2025\ncem.txt,2024\n"), names);
  assert.deepEqual([unknown, groups], [["ann.txt"], ["2024", "2025"]]);
});

test("pairs are shown by the groups of both documents", async () => {
  const { isOfKind } = await load("passages/name-table.ts");
  assert.deepEqual(["all", "within", "between"].map((kind) => isOfKind(kind, "x", "x")), [true, true, false]);
  assert.deepEqual(["all", "within", "between"].map((kind) => isOfKind(kind, "x", "y")), [true, false, true]);
  // A document of no group is in no pair of groups.
  for (const [a, b] of [["", ""], ["x", ""]]) assert.deepEqual(["all", "within", "between"].map((kind) => isOfKind(kind, a, b)), [true, false, false]);
  const { groupPairs, listEdges } = await load("passages/page.tsx");
  const { pairs } = data(false);
  Object.assign(pairs, { tokens: [10, 20], covered: [5, 5] });
  const isShown = (at) => at === 1;
  assert.deepEqual(groupPairs(pairs, false, isShown).map((it) => it.name), ['=HYPERLINK("x")', "c"]);
  assert.deepEqual(groupPairs(pairs, true, isShown).map((it) => it.name), ["c"]);
  assert.deepEqual(listEdges(pairs, isShown), { names: ['=HYPERLINK("x")', "c"], edges: [[1, 0, 0.75]] });
  assert.deepEqual(groupPairs(pairs, false).map((it) => it.longest), [25, 30, 30, 25]);
});

test("names are those of the table, and none is told while names are hidden", async () => {
  const { chooseNames } = await load("passages/page.tsx");
  const { Wording } = await load("language/catalog.ts");
  const { readNameTable } = await load("passages/name-table.ts");
  const files = ["x/ann.txt", "x/ben.txt", "x/cem.txt"];
  const table = readNameTable(encoded("filename,full_name,label,created_at\nann.txt,Li Jun,blue,Monday\nben.txt,Li Jun,red,\n"), files);
  const numbers = new Map(files.map((name, at) => [name, at + 1]));
  const shown = chooseNames(new Wording("en"), table, numbers, false);
  // Two documents of one author are told apart by their files.
  assert.deepEqual(files.map(shown.nameOf), ["Li Jun (x/ann.txt)", "Li Jun (x/ben.txt)", "x/cem.txt"]);
  assert.deepEqual(files.map(shown.detailsOf), ["blue · Monday", "red", ""]);
  const hidden = chooseNames(new Wording("en"), table, numbers, true);
  assert.deepEqual(files.map(hidden.nameOf), ["Document 1", "Document 2", "Document 3"]);
  assert.deepEqual(files.map(hidden.detailsOf), ["Group 1", "Group 2", ""]);
  for (const name of files) assert.doesNotMatch(`${hidden.wordsOf(name)}${hidden.nameOfGroup(hidden.groupOf(name))}`, /Li|blue|red|Monday|txt/);
  assert.match(shown.wordsOf(files[0]), /ann\.txt[^]*blue/);
  const alone = chooseNames(new Wording("en"), readNameTable(encoded("filename,name\nann.txt,Ann"), files), numbers, false);
  assert.deepEqual([alone.nameOf(files[0]), alone.detailsOf(files[0])], ["Ann", "x/ann.txt"]);
});

test("the table has the groups of both documents if they are known", async () => {
  const { writePairs } = await load("passages/pair-table.ts");
  const lines = writePairs(data(false), (name) => name, (name) => (name === "a" ? "=1" : "blue")).split("\r\n");
  assert.match(lines[0], /share_of_other_document,group_of_document,group_of_other_document$/);
  assert.match(lines[1], /,0\.5,0\.4,blue,'=1$/);
  assert.match(writePairs(data(true), (name) => name, () => "x").split("\r\n")[0], /group_of_document,group_of_source$/);
});

test("no two of twenty groups have the same mark", async () => {
  const { drawMark, markClass } = await load("passages/groups.tsx");
  const marks = new Set(Array.from({ length: 20 }, (_, at) => `${markClass(at)} ${drawMark(at, 0, 0, 6)}`));
  assert.equal(marks.size, 20);
  assert.equal(markClass(-1), "");
});

test("reworded passages are counted with the similarity of the nearest one", async () => {
  const { findReworded, sayReworded } = await load("passages/reworded.ts");
  const { Wording } = await load("language/catalog.ts");
  const mark = (kind, similarity) => [0, 9, 0, 9, 9, similarity, kind];
  assert.equal(findReworded([mark("verbatim", 1), mark("edited", 0.9)]), null);
  const marks = [mark("reworded", 0.4), mark("verbatim", 1), mark("reworded", 0.5112)];
  assert.deepEqual(findReworded(marks), { count: 2, similarity: 0.5112 });
  assert.equal(sayReworded(new Wording("zh"), marks), "其中洗稿 2 处，相似度最高 0.511");
  assert.equal(sayReworded(new Wording("en"), [mark("verbatim", 1)]), "");
});

/** A report with names wherever one can stand. */
const named = () => ({
  kind: "passages", program: "1", created: "now", language: "en", a_later_field: "ann.txt",
  summary: {
    documents: 40, against: 0, passages: 3, pairs: 2, copying: 2, directed: false, sharing: 3, copied_tokens: 70, tokens: 700, files: 40,
    base: { texts: 1, documents: 3, tokens: 9 }, common: { text: "Ann Lee and all", characters: 15, documents: 30 }, rejected: 1, unreadable_files: 1,
    unreadable: [{ file: "ann.pages", reason: "'ann.pages' cannot be read" }], guessed_encodings: [{ encoding: "gb18030", files: 2, first: "ann.txt", names: ["ann.txt"] }], skipped_files: 2, first_of: "ann.txt",
  },
  written: [["report", "/home/ann/report.html"]],
  pairs: {
    total: 2, document: ["ben.txt", "cem.txt"], source: ["ann.txt", "ann.txt"], tokens: [100, 200], covered: [40, 50], copied: [30, 40], reworded: [0, 8], unit: ["words", "words"],
    share: [0.3, 0.2], source_share: [0.3, 0.4], passages: [1, 2], longest: [30, 20], document_text: [1, 2], source_text: [0, 0],
    marks: [[[0, 4, 0, 4, 12, 1, "verbatim"]], []], edits: [[[]], []], ids: ["ann.txt"],
  },
  texts: { text: ["By Ann\n Lee </script> x", "by ANN LEE, no. 20431", "nobody"], characters: [24, 20, 6] },
});
const numbered = (name) => `Document ${["ann.txt", "ben.txt", "cem.txt"].indexOf(name) + 1}`;

test("a copy without names has none in any field, and keeps the places of passages", async () => {
  const { makeBlackout, readData, removeNames, replaceData, splitWords } = await load("passages/report-copy.ts");
  const { writePairs } = await load("passages/pair-table.ts");
  const copy = removeNames(named(), { language: "en", nameOf: numbered, words: splitWords("Ann Lee, 20431;") });
  assert.doesNotMatch(JSON.stringify(copy), /ann|\.txt|\.pages|Lee|20431/i);
  assert.deepEqual([copy.without_names, copy.format, copy.version, copy.pairs.total], [true, "lookalike-report", 1, 2]);
  assert.deepEqual([copy.pairs.document, copy.pairs.source], [["Document 2", "Document 3"], ["Document 1", "Document 1"]]);
  const lengths = ({ pairs, texts }) => pairs.document.map((_, at) => [pairs.document_text[at], pairs.source_text[at]].map((text) => texts.text[text].length));
  assert.deepEqual(lengths(copy), lengths(named()));
  assert.deepEqual([copy.summary.unreadable_files, copy.summary.files, copy.summary.unreadable], [1, 40, []]);
  assert.match(writePairs(copy, (name) => name), /Document 2,Document 1/);
  // Without words, texts stay.
  assert.equal(removeNames(named(), { language: "en", nameOf: numbered, words: [] }).texts.text[2], "nobody");
  const page = replaceData('<p>x</p><script type="application/json" id="data">{"kind":"old"}</script><script>y</script>', copy);
  assert.deepEqual(readData(page), JSON.parse(JSON.stringify(copy)));
  assert.equal(page.match(/<\/script>/g).length, 2);
  assert.deepEqual(splitWords(" 李明，王芳；a b \n"), ["李明", "王芳", "a b"]);
  assert.equal(makeBlackout(["Zoé", "a.b"])("ZOÉ, Zoe\u0301s, a.b, aXb"), "███, ████s, ███, aXb");
});

test("a copy of one pair has its two texts alone", async () => {
  const { removeNames } = await load("passages/report-copy.ts");
  const copy = removeNames(named(), { language: "zh", nameOf: numbered, words: ["nobody"], pair: 1 });
  assert.equal(copy.texts.text.length, 2);
  assert.deepEqual([copy.pairs.total, copy.pairs.document, copy.pairs.source], [1, ["Document 3"], ["Document 1"]]);
  assert.deepEqual([copy.texts.text[copy.pairs.document_text[0]], copy.texts.text[copy.pairs.source_text[0]]], ["██████", named().texts.text[0]]);
  assert.deepEqual([copy.summary.documents, copy.summary.pairs, copy.summary.common, copy.summary.unreadable_files], [2, 1, null, 0]);
  assert.doesNotMatch(JSON.stringify(copy), /\.txt|ben/);
});
