// Parts of the page in the browser that need neither a browser nor the module.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { createServer } from "vite";

let server;
const load = (path) => server.ssrLoadModule(`/src/web/${path}`);
before(async () => {
  server = await createServer({ configFile: false, logLevel: "error", server: { middlewareMode: true, ws: false }, appType: "custom" });
});
after(() => server.close());

const patternsOf = (message) => (typeof message === "string" ? [message] : Object.values(message));
const placeholders = (message) => new Set(patternsOf(message).flatMap((pattern) => [...pattern.matchAll(/\{(\w+)\}/g)].map((found) => found[1])));

test("both languages have every message of the page, with the same placeholders", async () => {
  const { webMessages } = await load("messages.ts");
  assert.deepEqual(Object.keys(webMessages.zh).sort(), Object.keys(webMessages.en).sort());
  for (const [key, english] of Object.entries(webMessages.en)) {
    assert.deepEqual(placeholders(webMessages.zh[key]), placeholders(english), key);
  }
  const same = Object.keys(webMessages.en).filter((key) => JSON.stringify(webMessages.en[key]) === JSON.stringify(webMessages.zh[key]));
  assert.deepEqual(same, []);
});

test("every message of the page is used", async () => {
  const folder = new URL("../../src/web/", import.meta.url);
  const sources = readdirSync(folder).filter((name) => name.endsWith(".tsx")).map((name) => readFileSync(new URL(name, folder), "utf8")).join("\n");
  const { webMessages } = await load("messages.ts");
  // Names of sections, of numbers and of reasons are put together.
  const joined = ["web.learn", "web.compare", "web.folder", "web.bands", "web.rows", "web.job.dedup", "web.job.passages"];
  const isJoined = (key) => joined.includes(key) || ["web.figure.", "web.unread."].some((start) => key.startsWith(start));
  const unused = Object.keys(webMessages.en).filter((key) => !isJoined(key) && !sources.includes(`"${key}"`));
  assert.deepEqual(unused, []);
});

test("messages of the page do not hide those of all pages", async () => {
  const { catalogs } = await server.ssrLoadModule("/src/language/catalog.ts");
  const { webMessages, addWebMessages, sayWeb } = await load("messages.ts");
  assert.deepEqual(Object.keys(webMessages.en).filter((key) => key in catalogs.en), []);
  addWebMessages();
  const { Wording } = await server.ssrLoadModule("/src/language/catalog.ts");
  assert.equal(sayWeb(new Wording("en"), "web.differ", { n: 1, of: 64 }), "1 of 64 bits differs");
  assert.equal(sayWeb(new Wording("zh"), "web.differ", { n: 3, of: 64 }), "64 位中有 3 位不同");
});

/** A program of a few instructions: it ends with a code, or reaches what cannot be reached. */
function makeProgram(body) {
  const text = (name) => [name.length, ...Buffer.from(name)];
  const section = (number, ...content) => [number, content.length, ...content];
  return new WebAssembly.Module(
    new Uint8Array([
      0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
      // Types: one number to nothing, nothing to nothing.
      ...section(1, 2, 0x60, 1, 0x7f, 0, 0x60, 0, 0),
      ...section(2, 1, ...text("wasi_snapshot_preview1"), ...text("proc_exit"), 0, 0),
      ...section(3, 1, 1),
      ...section(5, 1, 0, 1),
      ...section(7, 2, ...text("memory"), 2, 0, ...text("_start"), 0, 1),
      ...section(10, 1, body.length + 2, 0, ...body, 0x0b),
    ]),
  );
}

test("a program ends with its code, and a trap is an error", async () => {
  const { runProgram } = await load("wasi.ts");
  const none = new Uint8Array();
  // i32.const 2, call 0
  assert.deepEqual(await runProgram(makeProgram([0x41, 2, 0x10, 0]), none), { code: 2, output: none, messages: "" });
  assert.equal((await runProgram(makeProgram([]), none)).code, 0);
  await assert.rejects(runProgram(makeProgram([0x00]), none), WebAssembly.RuntimeError);
});

/** A program that writes a text to standard error, and then reaches what cannot be reached. */
function makeFailingProgram(message) {
  const text = Buffer.from(message);
  const name = (it) => [it.length, ...Buffer.from(it)];
  const section = (number, ...content) => [number, content.length, ...content];
  // A list of one buffer, the text behind it.
  const data = [16, 0, 0, 0, text.length, 0, 0, 0, ...text];
  // fd_write(2, 8, 1, 0), drop, unreachable.
  const body = [0x41, 2, 0x41, 8, 0x41, 1, 0x41, 0, 0x10, 0, 0x1a, 0x00];
  return new WebAssembly.Module(
    new Uint8Array([
      0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
      ...section(1, 2, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f, 0x60, 0, 0),
      ...section(2, 1, ...name("wasi_snapshot_preview1"), ...name("fd_write"), 0, 0),
      ...section(3, 1, 1),
      ...section(5, 1, 0, 1),
      ...section(7, 2, ...name("memory"), 2, 0, ...name("_start"), 0, 1),
      ...section(10, 1, body.length + 2, 0, ...body, 0x0b),
      ...section(11, 1, 0, 0x41, 8, 0x0b, data.length, ...data),
    ]),
  );
}

test("a program without memory is told from one that fails otherwise", async () => {
  const { MemoryExhausted, runProgram } = await load("wasi.ts");
  const run = (message) => runProgram(makeFailingProgram(message), new Uint8Array()).catch((cause) => cause);
  const exhausted = await run("memory allocation of 17 bytes failed");
  assert.ok(exhausted instanceof MemoryExhausted, String(exhausted));
  assert.match(exhausted.message, /^memory allocation of 17 bytes failed \(/);
  const other = await run("a bug");
  assert.ok(!(other instanceof MemoryExhausted) && other.message.startsWith("a bug ("), String(other));
});

const hasXz = (() => {
  try {
    return execFileSync("xz", ["--version"]).length > 0;
  } catch {
    return false;
  }
})();

/** Compresses as the build does, with other properties of the format. */
function packLzma(bytes, properties) {
  const packed = execFileSync("xz", ["--format=lzma", `--lzma1=preset=9,${properties}`, "--stdout"], { input: bytes, maxBuffer: 1 << 26 });
  packed.writeBigUInt64LE(BigInt(bytes.length), 5);
  return new Uint8Array(packed);
}

test("a packed module is unpacked to the same bytes", { skip: hasXz ? false : "there is no xz here" }, async () => {
  const { unpackLzma } = await load("lzma.ts");
  let seed = 1;
  const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 16;
  const noise = Buffer.from(Array.from({ length: 70_000 }, () => random() & 0xff));
  const source = readFileSync(new URL("../../src/web/wasi.ts", import.meta.url));
  const repeats = Buffer.concat(Array.from({ length: 300 }, () => noise.subarray(random() % 60_000, 60_000 + (random() % 300))));
  const contents = [Buffer.alloc(0), Buffer.from("x"), Buffer.alloc(100_000, 7), source, noise, Buffer.concat([source, noise, source, repeats])];
  for (const properties of ["pb=0", "pb=2,lc=3", "lc=0,lp=2,pb=4", "lc=4,lp=0,pb=1"]) {
    for (const content of contents) assert.ok(content.equals(unpackLzma(packLzma(content, properties))), `${properties}, ${content.length} bytes`);
  }
  const packed = packLzma(source, "pb=0");
  assert.throws(() => unpackLzma(packed.subarray(0, packed.length / 2)), /ends too early/);
  assert.throws(() => unpackLzma(packed.subarray(0, 5)), /ends too early/);
  // Bits of 1 ask for a match before there is any content.
  assert.throws(() => unpackLzma(packed.map((byte, at) => (at > 13 ? 0xff : byte))), /damaged/);
});

test("written files are as long as they were written, at any offset", async () => {
  const { WrittenContent } = await load("virtual-files.ts");
  const content = new WrittenContent();
  const expected = Buffer.alloc(2_600_000);
  // The parts have 1 MiB, so that pieces begin, end and cross their borders.
  const pieces = [[0, 10], [1_048_570, 12], [2_000_000, 600_000], [5, 1_100_000], [2_599_999, 1]];
  pieces.forEach(([offset, length], at) => {
    const bytes = new Uint8Array(length).fill(at + 1);
    content.write(bytes, offset);
    expected.set(bytes, offset);
  });
  assert.equal(content.size, expected.length);
  const read = Buffer.alloc(expected.length + 100);
  assert.equal(content.read(read, 0), expected.length);
  assert.ok(read.subarray(0, expected.length).equals(expected));
  assert.ok(Buffer.from(await content.toBlob().arrayBuffer()).equals(expected));
  assert.equal(content.read(new Uint8Array(4), expected.length), 0);
  // What was cut off does not come back.
  content.resize(3);
  content.resize(20);
  const cut = new Uint8Array(20);
  assert.equal(content.read(cut, 0), 20);
  assert.deepEqual([...cut], [1, 1, 1, ...new Array(17).fill(0)]);
  assert.equal((await content.toBlob()).size, 20);
});

test("arguments are those that a user types, and files cannot be taken for options or outputs", async () => {
  const { placeFiles, typedArguments, usualSettings, writeCommandLine, suggestJob } = await load("folder-run.ts");
  const file = new Blob(["x"]);
  const named = (...names) => names.map((name) => ({ name, file }));
  const paths = (...names) => placeFiles(named(...names)).map(({ path }) => path);
  assert.deepEqual(paths("a.jsonl", "-o", "kept.jsonl", "report.html", "a.jsonl", "folder/a.jsonl"), ["a.jsonl", "input/-o", "input/kept.jsonl", "input/report.html", "2/a.jsonl", "folder/a.jsonl"]);
  const typed = (names, settings) => writeCommandLine(typedArguments(placeFiles(named(...names)), { ...usualSettings, ...settings }));
  assert.equal(typed(["my news.csv.gz"], { text: "body" }), 'lookalike dedup "my news.csv.gz" -o kept.csv --removed removed.tsv --rejected rejected.csv --clusters clusters.tsv --report report.html --threshold 0.75 --text body');
  assert.equal(typed(["it's.docx", "b.html"], { job: "passages", words: 8, reworded: true, recipe: "jieba" }), 'lookalike passages "it\'s.docx" b.html -o passages.tsv --report report.html --min-length 8 --reworded --recipe jieba');
  assert.match(typed(["a.csv"], { encoding: "gb18030", text: "正文" }), / --text "正文" --encoding gb18030$/);
  // Each shell has characters of its own between quotation marks.
  const { quoteWord } = await load("../components/shell-words.ts");
  assert.deepEqual(["d-1", "a 1", "甲", "a'b", "$x"].map(quoteWord), ["d-1", '"a 1"', '"甲"', `"a'b"`, "'$x'"]);
  assert.equal(writeCommandLine(["dedup", "it's $5.csv", "--text", "title,body"]), "lookalike dedup 'it'\\''s $5.csv' --text \"title,body\"");
  assert.equal(suggestJob(named("a.docx")), "passages");
  assert.equal(suggestJob(named("a.txt", "b.txt")), "passages");
  assert.equal(suggestJob(named("a.txt")), "dedup");
  assert.equal(suggestJob(named("a.jsonl", "b.parquet")), "dedup");
  // Files with text that all were given are options, and read by nothing else. Duplicates have no such option.
  const given = placeFiles(named("a.txt", "b.txt", "the question.txt"));
  const beside = (job) => writeCommandLine(typedArguments(given.slice(0, 2), { ...usualSettings, job }, given.slice(2)));
  assert.match(beside("passages"), /^lookalike passages a\.txt b\.txt .* --base "the question\.txt"$/);
  assert.doesNotMatch(beside("dedup"), /question/);
});

test("rows of other encodings, files of a document each and rejected rows have options of the command", async () => {
  const { findMixedFormats, placeFiles, splitOutputs, typedArguments, usualSettings, writeCommandLine } = await load("folder-run.ts");
  const named = (...names) => names.map((name) => ({ name, file: new Blob(["x"]) }));
  const typed = (names, settings) => writeCommandLine(typedArguments(placeFiles(named(...names)), { ...usualSettings, ...settings }));
  assert.match(typed(["a.csv"], { encoding: "gb18030" }), / --encoding gb18030$/);
  assert.match(typed(["a.parquet"], {}), / -o kept\.parquet .* --rejected rejected\.jsonl /);
  assert.equal(typed(["a.txt", "b.txt"], { documentPerFile: true }), "lookalike dedup a.txt b.txt --document-per-file --removed removed.tsv --rejected rejected.txt --clusters clusters.tsv --report report.html --threshold 0.75");
  // Rows of JSONL and JSON go into one file, rows of other formats do not.
  assert.deepEqual(findMixedFormats(named("a.jsonl", "b.json", "c.ndjson.gz")), []);
  assert.deepEqual(findMixedFormats(named("1.txt", "2.txt", "rows.csv")), ["csv", "txt"]);
  const written = (size) => [["kept.txt", 3], ["rejected.txt", size], ["report.html", 9]].map(([name, length]) => ({ name, content: new Blob(["x".repeat(length)]) }));
  assert.equal(splitOutputs(written(5)).rejected.name, "rejected.txt");
  assert.equal(splitOutputs(written(0)).rejected, null);
  assert.deepEqual(splitOutputs(written(0)).others.map(({ name }) => name), ["kept.txt"]);
});

test("refusals are Chinese where the command has them so, and suggest an encoding", async () => {
  const { findSuggestedEncoding, translateRefusal } = await load("refusals.tsx");
  const pairs = [
    ["A: the feature 'x' is not of the form TOKEN=BITS:WEIGHT: give, for example, CSDN=100101:4", /^A：特征 'x' 应写成/],
    ["the hashes of A have 6 bits and those of B 5: give both the same number", /^A 的哈希有 6 位，B 的有 5 位/],
    ["the distance is 3: give less than the 3 bits of the fingerprints", /^海明距离是 3：应小于指纹的 3 位$/],
    ["the permutation 'b e a d' lacks the shingle 'c': list all 5 shingles of the documents", /^排列 'b e a d' 缺少片段 'c'/],
    ["通知.csv is not read: it holds rows, and not one document: give it as an input of its own", /^没有读取 通知\.csv：它存的是多行/],
  ];
  for (const [refusal, expected] of pairs) assert.match(translateRefusal(refusal) ?? "", expected);
  assert.equal(translateRefusal("nobody has said this"), null);
  assert.equal(findSuggestedEncoding("a.csv:2: the row is not valid UTF-8 at its byte 3; it looks like --encoding gb18030\n27 more"), "gb18030");
  assert.equal(findSuggestedEncoding("27 more bad rows: it looks like --encoding gb…; --rejected FILE"), null);
  assert.equal(findSuggestedEncoding("the field `text` is missing"), null);
});

test("sources are options, and documents are compared with them", async () => {
  const { placeFiles, typedArguments, usualSettings, writeCommandLine } = await load("folder-run.ts");
  const given = placeFiles(["a.txt", "question.txt", "book.docx", "web.html"].map((name) => ({ name, file: new Blob(["x"]) })));
  const typed = typedArguments(given.slice(0, 1), { ...usualSettings, job: "passages" }, given.slice(1, 2), given.slice(2));
  assert.equal(writeCommandLine(typed), "lookalike passages a.txt --against book.docx web.html -o passages.tsv --report report.html --min-length 12 --base question.txt");
});

test("files that a page does not read are set aside with the reason, and runs have a limit of memory below that of a module", async () => {
  const { pageArguments, splitUnread } = await load("folder-run.ts");
  const file = new Blob(["x"]);
  const names = ["a.pdf", "b.txt", "folder/C.PDF", "d.pdf.jsonl", "jakob.pages", "old.DOC", "Thumbs.db", "pdf", "rows.jsonl.gz", "x.docx"];
  const { readable, unread } = splitUnread(names.map((name) => ({ name, file })));
  assert.deepEqual(unread.map(({ name, reason }) => `${name} ${reason}`), ["a.pdf pdf", "folder/C.PDF pdf", "jakob.pages export", "old.DOC export", "Thumbs.db kind", "pdf kind"]);
  assert.deepEqual(readable.map(({ name }) => name), ["b.txt", "d.pdf.jsonl", "rows.jsonl.gz", "x.docx"]);
  const given = pageArguments(["dedup", "a.jsonl"], "zh");
  const [, mebibytes] = /^(\d+)Mi$/.exec(given[given.indexOf("--memory") + 1]);
  assert.ok(Number(mebibytes) * 2 ** 20 < 2 ** 32, mebibytes);
});

test("lines that others replace are the status and no message", async () => {
  const { splitMessages } = await load("engine.ts");
  assert.deepEqual(splitMessages("reading: 1 %\rreading: 2 %\rwarning: a\nwarning: b\ncomparing: 3 %\rdone\n"), { status: "comparing: 3 %", lines: "warning: a\nwarning: b\ndone\n" });
  assert.deepEqual(splitMessages(""), { status: "", lines: "" });
});
