// Parts of the console that need no browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { createServer } from "vite";

let server;
const load = (path) => server.ssrLoadModule(`/src/${path}`);
before(async () => {
  server = await createServer({ configFile: false, logLevel: "error", server: { middlewareMode: true, ws: false }, appType: "custom" });
});
after(() => server.close());

test("addresses are read as they are written, and places inside a page are none", async () => {
  const { parseAddress, writeAddress } = await load("console/address.ts");
  for (const address of [
    { section: "overview", collection: null, item: null },
    { section: "new", collection: null, item: null },
    { section: "check", collection: "news", item: null },
    { section: "clusters", collection: "news", item: "a/b #1 \u202e 中文%" },
  ]) {
    assert.deepEqual(parseAddress(writeAddress(address)), address);
  }
  assert.equal(writeAddress({ section: "clusters", collection: "news", item: "a/b" }), "#/clusters/news/a%2Fb");
  assert.deepEqual(parseAddress(""), { section: "overview", collection: null, item: null });
  assert.deepEqual(parseAddress("#/none/x"), { section: "overview", collection: "x", item: null });
  assert.deepEqual(parseAddress("#/clusters/news/%E0%A4%A"), { section: "clusters", collection: "news", item: null });
  assert.equal(parseAddress("#a1"), null);
  // The program for Windows opens the page of passages by its name.
  assert.deepEqual(parseAddress("#passages"), { section: "passages", collection: null, item: null });
});

test("parts of two texts become runs of their kinds and lengths", async () => {
  const { toRuns } = await load("console/service.ts");
  const parts = [{ a: "A", b: "Ａb" }, { both: " boat " }, { a: "dawn" }, { b: "noon 𝄞" }];
  assert.deepEqual(toRuns(parts), [1, 1, 2, 0, 6, 6, 2, 4, 0, 3, 0, 7]);
});

test("a quantile is over the inserts of the samples, at the bounds and beyond them", async () => {
  const { findQuantile, findRates, countRate } = await load("console/activity.ts");
  const activity = (...times) => ({ interval_seconds: 5, bounds_seconds: [0.001, 0.1], samples: times.map((insert_times) => ({ time: "", seconds: 5, kept: 10, duplicates: 5, insert_times })) });
  assert.equal(findQuantile(activity(), 0.99), null);
  assert.equal(findQuantile(activity([], []), 0.99), null);
  assert.equal(findQuantile(activity([99, 1, 0], []), 0.99), 0.001);
  assert.equal(findQuantile(activity([98, 2, 0], [0, 0, 0]), 0.99), 0.1);
  assert.equal(findQuantile(activity([90, 0, 2]), 0.99), Infinity);
  assert.deepEqual(findRates(activity([]).samples), [{ inserted: 3, duplicates: 1 }]);
  assert.deepEqual(countRate({ at: 0, documents: 10 }, { at: 2000, documents: 16 }), { inserted: 3, duplicates: null });
});

test("a problem of the service is shown beside the field that it names", async () => {
  const { findField } = await load("console/create-collection.tsx");
  const problem = (message, code = "bad_settings") => findField({ code, message });
  assert.equal(problem("whatever it says", "bad_name"), "name");
  assert.equal(problem("`window` is '3 weeks': give a period such as 2d"), "window");
  assert.equal(problem("the recipe 'mine' does not exist"), "recipe");
  assert.equal(problem("something else"), null);
});

test("the similarity that decides stands before those that are common, and the others wait", async () => {
  const { chooseFigures } = await load("compare/page.tsx");
  const figure = (value, kind = "similarity") => ({ value, kind, detail: "" });
  const figures = { minhash: figure(0.7, "estimate"), indel: figure(0.9), jaccard: figure(0.6), containment: figure(0.8), levenshtein: figure(null), cosine_of_counts: figure(0.75), euclidean_distance: figure(0.9, "distance") };
  const names = (similarity) => chooseFigures(figures, similarity).map(([name]) => name);
  assert.deepEqual(names(0.9), ["indel", "jaccard", "containment"]);
  assert.deepEqual(names(0.6), ["jaccard", "containment", "cosine_of_counts"]);
  assert.deepEqual(names(null), ["jaccard", "containment", "cosine_of_counts"]);
});

/** Calls of a service that answers each line: words name the answer. */
function makeDoors() {
  const sent = [];
  const answer = (line, at) => {
    if (line.includes("bad")) return { id: null, line: at + 1, problem: { code: "bad_json", detail: "it is bad" } };
    if (line.includes("late")) return { id: "x", verdict: "kept", of: null, cluster: "x", similarity: null, seq: null };
    if (line.includes("copy")) return { id: "x", verdict: "duplicate", of: "y", cluster: "y", similarity: 1, seq: 2 };
    return { id: "x", verdict: "kept", of: null, cluster: "x", similarity: null, seq: 1 };
  };
  const insertLines = async (lines) => {
    sent.push(lines);
    return lines.map(answer);
  };
  return { sent, doors: { insertLines, extract: async () => ({ text: "extracted", guessed_encoding: null }), pause: async () => {} } };
}

test("lines of a file are sent as they are, and those that are refused are written with their places", async () => {
  const { importFiles, writeRejected } = await load("console/import-lines.ts");
  const { sent, doors } = makeDoors();
  const rows = '{"id":1,"meta":{"a": 1}}\r\n\n{"id":2,"text":"copy"}\n  \nbad line 中文\n{"id":3,"text":"late"}';
  const file = (name, content) => ({ name, file: new File([content], name) });
  const files = [file("rows.jsonl", rows), file("more.jsonl.gz", gzipSync('{"id":4}\n')), file("note.txt", "a note"), file("table.csv", "a,b")];
  const progress = [];
  const result = await importFiles(files, doors, (it) => progress.push(it), () => true);
  assert.deepEqual(sent.flat(), ['{"id":1,"meta":{"a": 1}}', '{"id":2,"text":"copy"}', "bad line 中文", '{"id":3,"text":"late"}', '{"id":4}', '{"id":"note.txt","text":"a note"}']);
  const { kept, duplicates, late, rejected, rejectedLines, isStopped } = result;
  assert.deepEqual([kept, duplicates, late, rejected, isStopped], [3, 1, 1, 2, false]);
  assert.equal(
    writeRejected(rejectedLines),
    '{"file":"table.csv","line":0,"code":"kind","reason":"","row":""}\n{"file":"rows.jsonl","line":5,"code":"bad_json","reason":"it is bad","row":"bad line 中文"}\n',
  );
  const last = progress.at(-1);
  assert.deepEqual([last.readBytes, last.totalBytes], [last.totalBytes, files.reduce((sum, it) => sum + it.file.size, 0)]);
});

test("an import is cut into requests, waits where the service asks for it, and can be stopped", async () => {
  const { importFiles } = await load("console/import-lines.ts");
  const { ServiceProblem } = await load("console/service.ts");
  const { sent, doors } = makeDoors();
  const rows = Array.from({ length: 2500 }, (_, at) => `{"id":${at}}`).join("\n");
  const files = [{ name: "rows.jsonl", file: new File([rows], "rows.jsonl") }];
  const pauses = [];
  let refusals = 2;
  const busy = {
    ...doors,
    pause: async (seconds) => void pauses.push(seconds),
    insertLines: async (lines) => {
      if (refusals-- > 0) throw new ServiceProblem(429, "busy", "send again", 3);
      return doors.insertLines(lines);
    },
  };
  const result = await importFiles(files, busy, () => {}, () => true);
  assert.deepEqual([result.kept, pauses, sent.map((it) => it.length)], [2500, [3, 3], [1000, 1000, 500]]);
  // A refusal without a time to wait ends it.
  let sentBefore = 0;
  const refusing = { ...doors, insertLines: async (lines) => (sentBefore++ > 0 ? Promise.reject(new ServiceProblem(403, "forbidden", "no")) : doors.insertLines(lines)) };
  const refused = await importFiles(files, refusing, () => {}, () => true);
  assert.deepEqual([refused.kept, refused.isStopped, refused.problem.message], [1000, true, "no"]);
  let portions = 0;
  const stopped = await importFiles(files, { ...doors, insertLines: async (lines) => (portions++, doors.insertLines(lines)) }, () => {}, () => portions < 1);
  assert.deepEqual([stopped.kept, stopped.isStopped], [1000, true]);
});

test("lines are put together in time that is linear in their bytes", async () => {
  const { LineSplitter } = await load("console/import-lines.ts");
  const [part, parts] = [new Uint8Array(512).fill(0x61), 1 << 16];
  const splitter = new LineSplitter();
  const start = performance.now();
  for (let at = 0; at < parts; at += 1) assert.equal(splitter.split(part).length, 0);
  const [line] = splitter.split(new Uint8Array([0x0a]));
  assert.equal(line.text.length, 512 * parts);
  // Copying the line again with each part would move a terabyte.
  assert.ok(performance.now() - start < 20_000, `${performance.now() - start} ms`);
});

test("a line is cut at no part of a character, and one that is too long or no UTF-8 is named", async () => {
  const { LineSplitter } = await load("console/import-lines.ts");
  const bytes = new TextEncoder().encode("\ufeff一𝄞\n\ntwelve bytes\nthirteen bytes\nlast");
  const expected = [["一𝄞", null], ["", null], ["twelve bytes", null], ["", "long"], ["last", null]];
  for (const size of [1, 2, 3, 5, 8, 100]) {
    const splitter = new LineSplitter(12);
    const lines = [];
    for (let at = 0; at < bytes.length; at += size) lines.push(...splitter.split(bytes.subarray(at, at + size)));
    lines.push(...splitter.finish());
    assert.deepEqual(lines.map((it) => [it.text, it.problem]), expected, `${size}`);
  }
  const [bad, good] = new LineSplitter().split(new Uint8Array([0x61, 0xff, 0x0a, 0x62, 0x0a]));
  assert.deepEqual([bad, good], [{ text: "a\ufffd", problem: "utf8" }, { text: "b", problem: null }]);
});

test("a line that is too long is rejected with its place and the limit, and the others are sent", async () => {
  const { importFiles, longestLineBytes } = await load("console/import-lines.ts");
  const { Wording } = await load("language/catalog.ts");
  const { sent, doors } = makeDoors();
  const file = new File(['{"id":1}\n', new Uint8Array(longestLineBytes + 1).fill(0x61), '\n{"id":2}\n', new Uint8Array([0xff, 0x0a])], "rows.jsonl");
  const result = await importFiles([{ name: "rows.jsonl", file }], doors, () => {}, () => true);
  assert.deepEqual(sent.flat(), ['{"id":1}', '{"id":2}']);
  assert.deepEqual(result.rejectedLines.map(({ line, code }) => [line, code]), [[2, "long"], [4, "utf8"]]);
  assert.deepEqual([result.kept, result.rejected, result.problem], [2, 2, null]);
  const limit = new Wording("en").bytes(longestLineBytes);
  assert.match(new Wording("en").known("drop.bad.long", "", { limit }), /longer than 64\u00a0MB/);
  assert.match(new Wording("zh").known("drop.bad.long", "", { limit }), /超过 64\u00a0MB/);
});

test("an id that browsers resolve in a path stands in the query", async () => {
  const { Service } = await load("console/service.ts");
  const asked = [];
  const known = globalThis.fetch;
  globalThis.fetch = async (path) => {
    asked.push(new URL(path, "http://service").href.slice("http://service".length));
    return new Response("{}");
  };
  try {
    const service = new Service();
    for (const id of [".", "..", "a/b", "%2e", "-", "...", "?id=1", "一"]) await service.getDocument("news", id);
    await service.getCluster("news", "..", 5);
    await service.getCluster("news", "a/b", 5);
  } finally {
    globalThis.fetch = known;
  }
  const documents = ["-?id=.", "-?id=..", "a%2Fb", "%252e", "-", "...", "%3Fid%3D1", "%E4%B8%80"].map((end) => `/v1/collections/news/documents/${end}`);
  assert.deepEqual(asked, [...documents, "/v1/collections/news/clusters/-?id=..&members=5", "/v1/collections/news/clusters/a%2Fb?members=5"]);
});

test("Chinese texts have Chinese words, and decimals as Chinese writes them", async () => {
  const { catalogs } = await load("language/catalog.ts");
  const { webMessages } = await load("web/messages.ts");
  for (const [key, message] of [...Object.entries(catalogs.zh), ...Object.entries(webMessages.zh)]) {
    // Terms of the search language stay as they are typed.
    const text = String(message).replaceAll(/id:…|含 id、|text 和 id 字段|`[^`]*`/g, "");
    assert.doesNotMatch(text, /应答|聚类|去除|规范化|为使文件/, key);
    assert.doesNotMatch(text, /(?<![\w-])id(?![\w-])/, key);
    assert.doesNotMatch(text, /(?<![\d.])\.\d/, key);
    assert.doesNotMatch(text, /[\u4e00-\u9fff][,;:!?](?=\s|$)|\.\.\.(?!\d)/, key);
  }
});

test("orders of passages say nothing of a direction that is not known", async () => {
  const { catalogs } = await load("language/catalog.ts");
  for (const key of ["sort.mostShared", "sort.others", "passages.searchHelpShared"]) {
    assert.doesNotMatch(catalogs.en[key], /elsewhere|sources/);
    assert.doesNotMatch(catalogs.zh[key], /他处|来源/);
  }
});

test("conditions on meta are read with their values, and lists are asked for by them", async () => {
  const { parseConditions } = await load("console/documents.tsx");
  const { listPath, documentPath } = await load("console/service.ts");
  assert.deepEqual(parseConditions('source=news  meta.lang=zh note="two words" id="5" half= =x word'), [["source", "news"], ["lang", "zh"], ["note", '"two words"'], ["id", '"5"']]);
  assert.deepEqual(parseConditions("  "), []);
  const path = (verdict, conditions, after = 0) => listPath("news", { verdict, conditions }, after, 100);
  assert.equal(path("", []), "/v1/collections/news/documents?limit=100");
  assert.equal(path("kept", [["a b", "x&y"]], 7), "/v1/collections/news/documents?limit=100&after=7&verdict=kept&meta.a%20b=x%26y");
  assert.equal(documentPath("news", ".."), "/v1/collections/news/documents/-?id=..");
});

test("documents are read from the last one back, each once, also where numbers are missing", async () => {
  const { readBackwards } = await load("console/documents.tsx");
  const seqs = [...Array(250).keys()].map((at) => at + 1).filter((seq) => seq % 7 !== 0);
  const asked = [];
  const service = {
    getStats: async () => ({ last_durable_row: 250 }),
    listDocuments: async (name, filter, after, limit) => {
      asked.push([after, limit]);
      const listed = seqs.filter((seq) => seq > after).filter((seq) => filter.verdict === "" || seq % 2 === 0);
      return { documents: listed.slice(0, limit).map((seq) => ({ id: `${seq}`, seq })), next: null };
    },
  };
  const readAll = async (filter) => {
    const found = [];
    for (let last = null, first = true; first || last !== null; first = false) {
      const page = await readBackwards(service, "news", filter, last);
      found.push(...page.documents.map((it) => it.seq));
      last = page.next;
    }
    return found;
  };
  assert.deepEqual(await readAll({ verdict: "", conditions: [] }), [...seqs].reverse());
  assert.deepEqual(asked, [[150, 100], [50, 100], [0, 100]]);
  assert.deepEqual(await readAll({ verdict: "kept", conditions: [] }), seqs.filter((seq) => seq % 2 === 0).reverse());
  // An empty collection is not asked for documents.
  const empty = { getStats: async () => ({ last_durable_row: 0 }), listDocuments: async () => assert.fail("it is empty") };
  assert.deepEqual(await readBackwards(empty, "news", { verdict: "", conditions: [] }, null), { documents: [], next: null });
});

test("a request is a command of a shell: quoted, without the key, and from a file if it is long", async () => {
  const { writeCommand } = await load("console/request-example.tsx");
  const origin = "http://localhost:7600";
  assert.equal(writeCommand({ path: "/v1/collections/news" }, origin, false), "curl http://localhost:7600/v1/collections/news");
  assert.equal(writeCommand({ method: "DELETE", path: "/v1/x?a=1&b=2" }, origin, true), `curl -X DELETE 'http://localhost:7600/v1/x?a=1&b=2' -H "Authorization: Bearer $LOOKALIKE_KEY"`);
  const body = { text: "it's $HOME `date` \n \"quoted\" 中文" };
  const command = writeCommand({ path: "/q", body }, origin, false);
  const { execFileSync } = await import("node:child_process");
  // The shell itself reads the body as it was.
  const shown = execFileSync("sh", ["-c", command.replace(/^curl \S+ --json/, "printf %s")], { encoding: "utf8" });
  assert.deepEqual(JSON.parse(shown), body);
  assert.equal(writeCommand({ path: "/q", body: { text: "x".repeat(5000) } }, origin, false), "curl http://localhost:7600/q --json @request.json");
});

test("numbers of meta keep their digits, other numbers stay numbers, and times are those of people", async () => {
  const { parseDocument } = await load("console/service.ts");
  const { sayTime } = await load("console/documents.tsx");
  const meta = '{"id":12345678901234567890,"n":5,"x":1.10}';
  const document = parseDocument(`{"id":"a","similarity":1.0,"seq":5,"meta":${meta}}`);
  // Node before 22 rounds as old browsers do.
  if (JSON.rawJSON) assert.equal(JSON.stringify(document.meta), meta);
  assert.deepEqual([document.similarity, document.seq], [1, 5]);
  assert.ok(!("meta" in parseDocument('{"id":"a"}')));
  assert.match(sayTime("2026-11-30T10:00:00Z", "en-GB"), /30\/11\/2026/);
  assert.equal(sayTime("no time", "en-GB"), "no time");
});

test("collections are found by parts of their names", async () => {
  const { findCollections } = await load("console/collections.tsx");
  const collections = ["news-2026", "blog", "NEWS"].map((name) => ({ name, state: "open" }));
  assert.deepEqual(findCollections(collections, " news ").map((it) => it.name), ["news-2026", "NEWS"]);
  assert.equal(findCollections(collections, "").length, 3);
});

/** Returns the text of the sources below a folder, without the line breaks of strings, and with `{}` for every value in them. */
function readSources(folder) {
  const names = readdirSync(folder, { recursive: true }).filter((it) => it.endsWith(".rs"));
  const sources = names.map((it) => readFileSync(join(folder, it), "utf8")).join("\n");
  return sources.replaceAll(/\\\n\s*/g, "").replaceAll(/\{\w*\}/g, "{}");
}

test("details of the service are known in Chinese as the service writes them, and others stand behind the title of their code", async () => {
  const { knownProblems, sayProblemInChinese } = await load("language/problems.ts");
  const say = (code, detail) => Object.values(sayProblemInChinese(code, detail)).join("|");
  for (const [code, detail, said] of [
    ["bad_request", "the service has no directory for snapshots: start it with --snapshots PLACE", "|服务没有设置快照目录，启动时请加 --snapshots 目录|true"],
    ["no_snapshot", "the collection 'news' has no snapshot 'the name'", "|集合 'news' 没有快照 'the name'|true"],
    ["forbidden", "the key is limited to the collections news: 'posts' is not one of them", "|此密钥只能用于集合 news：不含 'posts'|true"],
    ["bad_settings", "`threshold` is odd", "设置不合法|`threshold` is odd|false"],
    ["of_a_later_version", "something new", "|something new|false"],
  ]) {
    assert.equal(say(code, detail), said);
  }
  const server = join(import.meta.dirname, "../../../crates/lookalike-server/src");
  const codes = [...readFileSync(join(server, "api/problem.rs"), "utf8").matchAll(/^ {4}\w+ (\w+) \d{3} "/gm)].map((found) => found[1]);
  assert.deepEqual(codes.filter((it) => !(it in knownProblems.titles)), []);
  const sources = readSources(server) + readSources(join(server, "../../lookalike-store/src"));
  const written = (english) => sources.includes(english);
  assert.deepEqual(knownProblems.details.map(([english]) => english).filter((it) => !written(it)), []);
  for (const [english, chinese] of knownProblems.details) assert.equal(english.split("{}").length, chinese.split("{}").length, english);
});
