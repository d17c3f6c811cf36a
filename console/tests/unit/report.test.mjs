// Parts of the report that need no browser.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { createServer } from "vite";

let server;
const load = (path) => server.ssrLoadModule(`/src/${path}`);
before(async () => {
  server = await createServer({ configFile: false, logLevel: "error", server: { middlewareMode: true, ws: false }, appType: "custom" });
});
after(() => server.close());

const placeholders = (message) => {
  const patterns = typeof message === "string" ? [message] : Object.values(message);
  return new Set(patterns.flatMap((it) => [...it.matchAll(/\{(\w+)\}/g)].map((found) => found[1])));
};

test("both languages have every message, with the same placeholders", async () => {
  const { catalogs } = await load("language/catalog.ts");
  assert.deepEqual(Object.keys(catalogs.zh).sort(), Object.keys(catalogs.en).sort());
  for (const key of Object.keys(catalogs.en)) {
    assert.deepEqual(placeholders(catalogs.zh[key]), placeholders(catalogs.en[key]), key);
    for (const language of ["en", "zh"]) {
      const patterns = Object.values(typeof catalogs[language][key] === "string" ? [catalogs[language][key]] : catalogs[language][key]);
      assert.ok(patterns.every((it) => it.trim() !== ""), `${language} ${key}`);
    }
  }
});

test("every message is Chinese where it has words", async () => {
  const { catalogs } = await load("language/catalog.ts");
  const same = Object.keys(catalogs.en).filter((key) => JSON.stringify(catalogs.en[key]) === JSON.stringify(catalogs.zh[key]));
  // Terms of the search language, units and names of algorithms are the same in both.
  assert.deepEqual(same.filter((key) => !key.startsWith("figure.")), ["stat.speed", "list.searchHint", "passages.searchHint", "contamination.searchHint", "console.clusterHint", "label.searchHint"]);
});

test("singular, plural, numbers and units are written", async () => {
  const { Wording } = await load("language/catalog.ts");
  const [en, zh] = [new Wording("en"), new Wording("zh")];
  assert.equal(en.text("list.count", { n: 1 }), "1 entry");
  assert.equal(en.text("list.count", { n: 12345 }), "12,345 entries");
  assert.equal(zh.text("list.count", { n: 12345 }), "12,345 项");
  assert.equal(en.similarity(0.99999), "0.999990");
  assert.equal(en.similarity(0.75), "0.750");
  assert.equal(en.similarity(1), "1");
  assert.equal(en.bytes(1_500_000), "1.5\u00a0MB");
  assert.equal(en.bytes(999_999), "1.0\u00a0MB");
  assert.equal(en.share(0.9999), "99.99\u00a0%");
  assert.equal(en.share(0.012), "1.2\u00a0%");
  // The rest of 1.4 % has the same digits, and both make 100 %.
  assert.deepEqual([zh.share(0.986), zh.share(0.014), zh.share(0.9), zh.share(1)], ["98.6\u00a0%", "1.4\u00a0%", "90\u00a0%", "100\u00a0%"]);
});

test("searches are parsed", async () => {
  const { parseQuery, parseNumberTest, isBadTerm } = await load("report/query.ts");
  const query = parseQuery('similarity:>0.9 cluster:>=10 text:"two words" ID：ＡＢ plain marked:no');
  assert.ok(!isBadTerm(query));
  assert.deepEqual([query.text, query.id, query.words, query.marked], [["two words"], ["ab"], ["plain"], ["no"]]);
  assert.deepEqual([0.9, 0.91].map((it) => query.similarity[0](it)), [false, true]);
  assert.deepEqual([9, 10].map((it) => query.cluster[0](it)), [false, true]);
  assert.deepEqual([0.79, 0.8, 0.85, 0.86].map(parseNumberTest("0.8..0.85")), [false, true, true, false]);
  assert.equal(parseNumberTest("=> 3"), null);
  assert.deepEqual(parseQuery("similarity:high"), { term: "similarity:high", help: "list.helpNumber" });
  assert.deepEqual(parseQuery("marked:maybe"), { term: "marked:maybe", help: "list.helpMarked" });
});

test("sizes of clusters are grouped", async () => {
  const { groupSizes } = await load("report/overview.tsx");
  const groups = groupSizes([[2, 5], [3, 1], [4, 1], [5, 1], [8, 1], [9, 2]]);
  assert.deepEqual(groups, [
    { from: 2, to: 2, clusters: 5 },
    { from: 3, to: 4, clusters: 2 },
    { from: 5, to: 8, clusters: 2 },
    { from: 9, to: 16, clusters: 2 },
  ]);
});

test("marked words of a finding are cut out in order", async () => {
  const { splitMarks } = await load("contamination/page.tsx");
  const parts = (text, marks) => splitMarks({ text, marks }).map((it) => (it.isMarked ? `[${it.text}]` : it.text)).join("");
  assert.equal(parts("a𝄞 问 b", [[0, 3], [4, 5]]), "[a𝄞] [问] b");
  assert.equal(parts("whole", [[0, 5]]), "[whole]");
  assert.equal(parts("none", []), "none");
  assert.equal(parts("", []), "");
});

test("the statement of a benchmark names the ids that scores leave out", async () => {
  const { writeStatement } = await load("contamination/page.tsx");
  const { Wording } = await load("language/catalog.ts");
  const benchmark = { name: "quiz/test", items: 1319, found: 3, found_items: ["q7", "q12"] };
  assert.equal(
    writeStatement(new Wording("en"), benchmark),
    "quiz/test: of 1,319 items, 3 are in the corpus. Scores without them leave out these ids:\nq7\nq12\n… and 1 more; the table of --items has it",
  );
  assert.equal(
    writeStatement(new Wording("zh"), { ...benchmark, found: 2 }),
    "quiz/test：1,319 道题中有 2 道在语料中。排除它们的成绩不计以下编号的题目：\nq7\nq12",
  );
});

test("lines of two texts stay beside each other", async () => {
  const { splitLines } = await load("components/side-by-side.tsx");
  const lines = splitLines("a\nb\nc", "a\nx\ny\nc", [0, 2, 2, 2, 1, 0, 3, 0, 3, 0, 2, 2]);
  assert.deepEqual(lines, [
    { left: [{ kind: 0, text: "a" }], right: [{ kind: 0, text: "a" }] },
    { left: [{ kind: 2, text: "b" }], right: [{ kind: 3, text: "x\ny" }] },
    { left: [{ kind: 0, text: "c" }], right: [{ kind: 0, text: "c" }] },
  ]);
});

test("phrases of the engine are translated with their parts", async () => {
  const { toChinese } = await load("language/phrases.ts");
  assert.equal(toChinese("features: 11 and 12, 9 shared"), "特征 11 个和 12 个，共有 9 个");
  assert.equal(toChinese("3 insertions and deletions, 25 characters in both"), "3 次插入或删除，两篇共 25 个字符");
  assert.equal(toChinese("Jaccard 0.6429 is below the threshold 0.75"), "Jaccard 0.6429 低于阈值 0.75");
  assert.equal(toChinese("the field `words` is a number, not a string"), "字段 `words` 是数字，应为字符串");
  assert.equal(toChinese("something new"), null);
});

test("thresholds are judged by labelled pairs, at the threshold and beside it", async () => {
  const { judgeThreshold, findBestThreshold } = await load("console/plan.ts");
  const pairs = [[0.9, true], [0.8, true], [0.7, false], [0.6, true]].map(([similarity, isSame]) => ({ similarity, isSame }));
  const at = (threshold) => judgeThreshold(pairs, threshold);
  assert.deepEqual([at(0.8).found, at(0.8).wrong, at(0.8).missed], [2, 0, 1]);
  assert.deepEqual([at(0.81).found, at(0.79).found], [1, 2]);
  assert.deepEqual([at(0.7).precision, at(0.7).recall], [2 / 3, 2 / 3]);
  assert.equal(at(0.95).precision, null);
  assert.equal(findBestThreshold(pairs), 0.6);
  assert.equal(findBestThreshold([]), null);
});

test("bands are those of the plan", async () => {
  const { planBands } = await load("console/plan.ts");
  assert.deepEqual(planBands(0.8), { bands: 21, rows: 6 });
  assert.deepEqual(planBands(0.9), { bands: 12, rows: 10 });
  assert.equal(planBands(0.01), null);
});

test("lines of a large cluster lead to its least similar members", async () => {
  const { chooseLines, findFloor } = await load("components/cluster-graph.tsx");
  const members = Array.from({ length: 150 }, (_, at) => ({ id: `${at}`, similarity: 0.5 + at / 300, place: 0 }));
  assert.equal(chooseLines(members.slice(0, 100)).size, 100);
  const lines = chooseLines(members);
  assert.equal(lines.size, 100);
  assert.ok(lines.has(99) && !lines.has(100));
  assert.equal(findFloor(members, 0.75), 0.4);
});

test("files become documents, in Unicode at once and in other encodings by the service", async () => {
  const { readFile } = await load("console/document-files.ts");
  const bytes = (text) => new TextEncoder().encode(text);
  const read = (name, content) => readFile(name, content, () => assert.fail(`${name} is read here`));
  assert.deepEqual((await read("a.txt", bytes("\ufefftext"))).documents, [{ id: "a.txt", text: "text" }]);
  const old = new Uint8Array([0xce, 0xc4, 0xd5, 0xc2]);
  const guess = async (name, content) => ({ text: `${name} ${content === old}`, guessed_encoding: "gb18030" });
  for (const name of ["a.txt", "a.MD"]) {
    const guessed = await readFile(name, old, guess);
    assert.deepEqual([guessed.documents, guessed.guessed], [[{ id: name, text: `${name} true` }], [{ name, encoding: "gb18030" }]]);
  }
  const told = await read("r.jsonl", new Uint8Array([...bytes('{"text":"'), ...old, ...bytes('"}')]));
  assert.deepEqual([told.documents[0].text, told.guessed], ["文章", [{ name: "r.jsonl", encoding: "gb18030" }]]);
  assert.deepEqual((await read("a.txt", bytes("text"))).guessed, []);
  assert.deepEqual((await read("a.txt", new Uint8Array([0xff, 0xfe, 0x00, 0x4e]))).documents, [{ id: "a.txt", text: "一" }]);
  assert.deepEqual((await read("a.jsonl", new Uint8Array([0x41, 0xff, 0xff]))).bad, [{ name: "a.jsonl", line: 0, reason: "encoding" }]);
  const rows = await read("r.jsonl", bytes('{"id":7,"text":"x"}\n\n{"text":"y"}\n{"id":"z"}\n[1]\n'));
  assert.deepEqual(rows.documents, [{ id: "7", text: "x" }, { id: "r.jsonl:3", text: "y" }]);
  assert.deepEqual(rows.bad.map((it) => [it.line, it.reason]), [[4, "json"], [5, "json"]]);
  assert.deepEqual([(await read("x.odt", bytes("x"))).bad[0].reason, (await read("x.txt", bytes(" "))).bad[0].reason], ["kind", "empty"]);
});

test("the service extracts the texts of other documents, two at a time", async () => {
  const { nameFiles, readFile, readFiles } = await load("console/document-files.ts");
  const { ServiceProblem } = await load("console/service.ts");
  const sent = new Uint8Array([0x50, 0xff]);
  assert.deepEqual((await readFile("b.docx", sent, async (name, content) => ({ text: `${name} ${content === sent}`, guessed_encoding: null }))).documents, [{ id: "b.docx", text: "b.docx true" }]);
  const fail = (problem) => readFile("c.pdf", sent, () => Promise.reject(problem));
  assert.deepEqual((await fail(new ServiceProblem(422, "bad_document", "no text"))).bad, [{ name: "c.pdf", line: 0, reason: "service", message: "no text" }]);
  assert.deepEqual((await fail(new TypeError("Failed to fetch"))).bad[0].reason, "sending");
  assert.deepEqual((await readFile("d.pdf", sent, async () => ({ text: "\n", guessed_encoding: null }))).bad[0].reason, "empty");
  await assert.rejects(fail(new ServiceProblem(401, "unauthenticated", "a key is required")));
  let [running, most, told] = [0, 0, 0];
  const slow = async (name) => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 5));
    running -= 1;
    return { text: name, guessed_encoding: null };
  };
  const files = ["5", "1", "4", "2", "3"].map((it) => new File(["x"], `${it}.pdf`));
  const { documents } = await readFiles(nameFiles(files), slow, (done) => (told = done));
  assert.deepEqual([documents.map((it) => it.text).join(" "), most, told], ["1.pdf 2.pdf 3.pdf 4.pdf 5.pdf", 2, 5]);
});

test("a dropped folder gives its files with their paths, and none that a system has left there", async () => {
  const { findDroppedFiles } = await load("console/document-files.ts");
  const file = (path) => ({ isFile: true, name: path.split("/").at(-1), fullPath: path, file: (resolve) => resolve(new File(["x"], path.split("/").at(-1))) });
  // A browser answers with some of the entries at a time.
  const folder = (path, ...portions) => ({ isFile: false, isDirectory: true, name: path.split("/").at(-1), fullPath: path, createReader: () => ({ readEntries: (resolve) => resolve(portions.shift() ?? []) }) });
  const inner = folder("/essays/b", [file("/essays/b/1.txt"), file("/essays/b/Thumbs.db")]);
  const essays = folder("/essays", [file("/essays/1.txt"), file("/essays/.DS_Store")], [inner, file("/essays/~$2.docx"), file("/essays/2.docx")]);
  const item = (entry) => ({ kind: "file", webkitGetAsEntry: () => entry, getAsFile: () => (entry.isFile ? new File(["x"], entry.name) : null) });
  const found = await findDroppedFiles({ items: [item(essays), item(file("/3.txt"))], files: [] });
  assert.deepEqual(found.map((it) => it.name), ["essays/1.txt", "essays/b/1.txt", "essays/2.docx", "3.txt"]);
  const plain = await findDroppedFiles({ items: [], files: [new File(["x"], "4.txt")] });
  assert.deepEqual(plain.map((it) => it.name), ["4.txt"]);
});

test("a file is taken where its entry cannot be read, and a folder by its handle", async () => {
  const { findDroppedFiles, FolderUnreadable } = await load("console/document-files.ts");
  const fail = (_, reject) => reject(new DOMException("A URI supplied to the API was malformed", "EncodingError"));
  const plain = { kind: "file", webkitGetAsEntry: () => ({ isFile: true, name: "a.txt", file: fail }), getAsFile: () => new File(["x"], "a.txt") };
  assert.deepEqual((await findDroppedFiles({ items: [plain], files: [] })).map((it) => it.name), ["a.txt"]);
  const file = (name) => ({ kind: "file", name, getFile: async () => new File(["x"], name) });
  const folder = (name, ...entries) => ({ kind: "directory", name, async *values() { yield* entries; } });
  const handle = folder("essays", file("1.txt"), file(".DS_Store"), folder("b", file("1.txt"), file("Thumbs.db")));
  const dropped = (getAsFileSystemHandle) => {
    const entry = { isFile: false, isDirectory: true, name: "essays", createReader: () => ({ readEntries: fail }) };
    return { items: [{ kind: "file", webkitGetAsEntry: () => entry, getAsFile: () => null, ...(getAsFileSystemHandle && { getAsFileSystemHandle }) }], files: [] };
  };
  assert.deepEqual((await findDroppedFiles(dropped(async () => handle))).map((it) => it.name), ["essays/1.txt", "essays/b/1.txt"]);
  for (const way of [undefined, async () => null, async () => Promise.reject(new Error("denied"))]) {
    await assert.rejects(findDroppedFiles(dropped(way)), (problem) => problem instanceof FolderUnreadable && problem.folder === "essays");
  }
});

test("a folder that is chosen gives its files with their paths, and none that a system has left there", async () => {
  const { nameFolderFiles } = await load("console/document-files.ts");
  const files = ["essays/1.txt", "essays/.DS_Store", "essays/b/Thumbs.db", "essays/b/~$1.docx", "essays/b/1.docx"];
  const named = nameFolderFiles(files.map((webkitRelativePath) => ({ webkitRelativePath, name: webkitRelativePath.split("/").at(-1) })));
  assert.deepEqual(named.map((it) => it.name), ["essays/1.txt", "essays/b/1.docx"]);
});

test("a report of the console names the files that it could not read, and encodings that it guessed", async () => {
  const { addUnread } = await load("console/passages.tsx");
  const read = (files, bad, guessed = []) => ({ documents: [], bad, guessed, files });
  const bad = [{ name: "jakob.pages", line: 0, reason: "kind" }, { name: "r.jsonl", line: 3, reason: "json" }, { name: "b.docx", line: 0, reason: "service", message: "'b.docx' cannot be read: no text" }];
  const summary = addUnread({ documents: 3, rejected: 0, unreadable_files: 0, unreadable: [], guessed_encodings: [] }, [read(5, bad, [{ name: "old.txt", encoding: "gb18030" }]), read(1, [], [{ name: "q.txt", encoding: "gb18030" }])]);
  assert.deepEqual([summary.files, summary.unreadable_files, summary.rejected], [6, 2, 3]);
  assert.deepEqual(summary.unreadable.map((it) => it.file), ["jakob.pages", "b.docx"]);
  assert.match(summary.unreadable[0].reason, /^files of this kind are not read/);
  assert.deepEqual(summary.guessed_encodings, [{ encoding: "gb18030", files: 2, first: "old.txt", names: ["old.txt", "q.txt"] }]);
});

test("a damaged archive is told in words for everybody", async () => {
  const { clarifyReason } = await load("components/file-reason.tsx");
  const { Wording } = await load("language/catalog.ts");
  assert.equal(clarifyReason(new Wording("en"), "'b.docx' cannot be read: invalid Zip archive: Could not find EOCD"), "'b.docx' cannot be read: the file is incomplete or damaged; ask for it again");
  assert.match(clarifyReason(new Wording("zh"), "invalid Zip archive: Could not find EOCD"), /^文件不完整或已损坏/);
});

test("the fill of a window is the time between its oldest and its newest document", async () => {
  const { findFill, parsePeriod } = await load("console/window-fill.ts");
  assert.deepEqual(["90s", "15m", "36h", "2d", "1.5w", "2", "d", "2 days"].map(parsePeriod), [90, 900, 129_600, 172_800, 907_200, null, null, null]);
  assert.equal(findFill("2d", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"), 0.5);
  assert.equal(findFill("2d", 1_000, 1_000 + 172_801), 1);
  assert.deepEqual([findFill("2d", undefined, 5), findFill("none", 1, 5), findFill("1h", 5, 1)], [null, null, 0]);
});

test("rules of a chart stand at equal distances of round numbers", async () => {
  const { evenRules } = await load("components/charts.tsx");
  assert.deepEqual([1, 2, 3, 5, 9, 12, 19, 20, 70, 101].map(evenRules), [[1], [1, 2], [1, 2, 3], [2, 4], [2, 4, 6, 8], [5, 10], [5, 10, 15], [10, 20], [20, 40, 60], [50, 100]]);
});

test("every stage of a run has its name in both languages", async () => {
  const { catalogs } = await load("language/catalog.ts");
  const folder = new URL("../../../crates/lookalike-batch/src/run/commands/", import.meta.url);
  const sources = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".rs")).map((name) => readFileSync(new URL(name, folder), "utf8"));
  const stages = new Set(sources.flatMap((source) => [...source.matchAll(/end_stage\("(\w+)"\)/g)].map((found) => found[1])));
  assert.ok(stages.size >= 4, [...stages].join());
  for (const stage of stages) for (const catalog of Object.values(catalogs)) assert.ok(`run.stage.${stage}` in catalog, stage);
});

test("an address leads to a section of the report, and to the first one if it has none of this name", async () => {
  const { parseView, writeView } = await load("report/address.ts");
  const sections = ["overview", "review", "run"];
  for (const view of [{ section: "overview" }, { section: "review", show: "equal" }, { section: "run" }]) assert.deepEqual(parseView(writeView(view), sections), view);
  assert.equal(writeView({ section: "review", show: "all" }), "#/review/all");
  for (const hash of ["", "#", "#/none", "#a1", "#/forms"]) assert.deepEqual(parseView(hash, sections), { section: "overview" }, hash);
  assert.deepEqual(parseView("#/review/none", sections), { section: "review" });
  assert.deepEqual(parseView("#/run/all", sections), { section: "run" });
});

test("the route of the join names the limit of the plan, where it has one", async () => {
  const { sayRoute } = await load("report/route.ts");
  const { Wording } = await load("language/catalog.ts");
  const zh = new Wording("zh");
  assert.equal(sayRoute(zh, { plan: { method: "auto", joined_features: 64 } }, "join"), "一篇特征不超过 64 个，由精确连接找到");
  assert.equal(sayRoute(zh, { plan: { method: "join", joined_features: 1e9 } }, "join"), "由精确连接找到");
  assert.equal(sayRoute(zh, { plan: { method: "auto", joined_features: 64 } }, "minhash"), "由 MinHash 找到");
});
