// The page that does the work in the browser, and its module beside the command.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { createServer as createVite } from "vite";
import { Place, checkLooks, checkPage, dropPaths, droppedFiles, hostile, launch, makeDocx, openPage, program, sampleRows, skip as skipBrowser } from "./support.mjs";

const root = resolve(import.meta.dirname, "../../..");
const folder = join(root, "target/web");
const pageFile = join(folder, "index.html");
const skip = skipBrowser || (existsSync(pageFile) ? false : `there is no ${pageFile}: npm run web builds it`);

let browser, vite, server, url, runModule, runOverFiles, runWithMemory;
/** Paths that the server was asked for. */
const served = [];

before(async () => {
  if (skip) return;
  vite = await createVite({ configFile: false, logLevel: "error", server: { middlewareMode: true, ws: false }, appType: "custom" });
  const { runProgram } = await vite.ssrLoadModule("/src/web/wasi.ts");
  const packed = /id="module">([^<]*)</.exec(readFileSync(pageFile, "utf8"))[1];
  const { unpackLzma } = await vite.ssrLoadModule("/src/web/lzma.ts");
  const code = unpackLzma(new Uint8Array(Buffer.from(packed, "base64")));
  const module = await WebAssembly.compile(code);
  runModule = async (call, attachment = Buffer.alloc(0)) => {
    const ended = await runProgram(module, new Uint8Array(Buffer.concat([Buffer.from(`${JSON.stringify(call)}\n`), attachment])));
    return { code: ended.code, output: Buffer.from(ended.output).toString(), messages: ended.messages };
  };
  const { BytesContent, VirtualFiles } = await vite.ssrLoadModule("/src/web/virtual-files.ts");
  runWithMemory = async (megabytes, given, contents) => {
    const files = new VirtualFiles();
    for (const [name, bytes] of Object.entries(contents)) files.add(name, new BytesContent(new Uint8Array(bytes)));
    return runProgram(await WebAssembly.compile(limitMemory(code, megabytes * 16)), new Uint8Array(), { arguments: given, files });
  };
  runOverFiles = async (given, contents) => {
    const files = new VirtualFiles();
    for (const [name, bytes] of Object.entries(contents)) files.add(name, new BytesContent(new Uint8Array(bytes)));
    let reported = "";
    const ended = await runProgram(module, new Uint8Array(), { arguments: given, files, onMessage: (text) => (reported += text) });
    assert.equal(reported, ended.messages);
    const written = files.listWritten().map(([name, content]) => [name, content.toBlob()]);
    const read = await Promise.all(written.map(async ([name, blob]) => [name, Buffer.from(await blob.arrayBuffer())]));
    return { code: ended.code, output: Buffer.from(ended.output).toString(), messages: ended.messages, files: Object.fromEntries(read) };
  };
  server = createServer((request, response) => {
    served.push(request.url);
    const file = join(folder, request.url === "/" ? "index.html" : request.url.slice(1));
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": file.endsWith(".html") ? "text/html" : "application/octet-stream" }).end(readFileSync(file));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  url = `http://127.0.0.1:${server.address().port}/`;
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await vite?.close();
  server?.close();
});

/** Returns a module whose memory grows to this number of pages of 64 KiB at most. */
function limitMemory(code, pages) {
  const number = (at) => {
    let [value, bits, next] = [0, 0, at];
    for (;; bits += 7) {
      value += (code[next] & 0x7f) * 2 ** bits;
      if (code[next++] < 0x80) return { value, next };
    }
  };
  const encode = (value) => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...encode(Math.floor(value / 0x80))]);
  const memorySection = 5;
  let at = 8;
  while (code[at] !== memorySection) {
    const { value, next } = number(at + 1);
    at = next + value;
  }
  const { value, next } = number(at + 1);
  // One memory, with a largest size.
  const section = [1, 1, ...encode(number(next + 2).value), ...encode(pages)];
  return Buffer.concat([code.subarray(0, at), Buffer.from([memorySection, ...encode(section.length), ...section]), code.subarray(next + value)]);
}

const runCommand = (...args) => execFileSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28, env: { ...process.env, LANG: "C" } });
const dictionary = () => gunzipSync(readFileSync(join(folder, "jieba-dictionary.bin")));

/** Pairs of texts in both languages: news, hostile ones, empty ones. */
function somePairs() {
  const rows = readFileSync(join(root, "examples/news.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line).text);
  const news = rows.slice(1).map((text, at) => [rows[at], text]);
  return [...news, [hostile[1].replaceAll("\0", ""), hostile[2]], ["", "…"], ["the cat sat on the mat", "the cat sat on a mat"], ["同一句话", "同一句话"]];
}

test("the module compares texts with the bytes of the command", { skip }, async () => {
  const pairs = somePairs();
  assert.ok(pairs.length > 10, String(pairs.length));
  for (const [a, b] of pairs) {
    const { code, output, messages } = await runModule({ call: "compare", a, b });
    assert.equal(code, 0, messages);
    assert.equal(output, runCommand("compare", "--json", "--literal", "--", a, b));
  }
});

test("recipes, measures and thresholds give the bytes of the command", { skip }, async () => {
  const [a, b] = somePairs()[0];
  const { recipes } = JSON.parse((await runModule({ call: "abilities" })).output);
  assert.ok(recipes.some((it) => it.jieba));
  for (const { name, jieba } of recipes) {
    const { code, output, messages } = await runModule({ call: "compare", a, b, recipe: name }, jieba ? dictionary() : undefined);
    assert.equal(code, 0, `${name}: ${messages}`);
    assert.equal(output, runCommand("compare", "--json", "--literal", "--recipe", name, "--", a, b), name);
  }
  for (const measure of ["containment", "cosine", "levenshtein", "indel", "lcs"]) {
    const { output } = await runModule({ call: "compare", a, b, measure, threshold: 0.6, reworded: true });
    assert.equal(output, runCommand("compare", "--json", "--literal", "--verify", measure, "--threshold", "0.6", "--reworded", "--", a, b), measure);
  }
});

test("worked examples give the bytes of the command", { skip }, async () => {
  const [a, b] = ["CSDN=100101:4 博客=101011:5", "CSDN=100101:4 博客=101011:3 教程=010011:2"];
  const hashes = await runModule({ call: "hashes", a, b, distance: 2 });
  assert.equal(hashes.output, runCommand("compare", "--json", "--hashes", "--distance", "2", a, b));
  const documents = ["S1=a d", "S2=c", "S3=b d e", "S4=a c d"];
  const permutations = ["b e a d c", "d c b a e"];
  const sets = await runModule({ call: "permutations", documents, permutations });
  const given = [...documents.flatMap((it) => ["--shingles", it]), ...permutations.flatMap((it) => ["--permutation", it])];
  assert.equal(sets.output, runCommand("fingerprint", "--json", ...given));
});

test("refusals are sentences of the engine", { skip }, async () => {
  const wrong = await runModule({ call: "hashes", a: "x", b: "y=1:1" });
  assert.deepEqual([wrong.code, wrong.output], [2, ""]);
  assert.match(wrong.messages, /^A: the feature 'x' is not of the form TOKEN=BITS:WEIGHT/);
  const without = await runModule({ call: "compare", a: "一", b: "二", recipe: "jieba" });
  assert.equal(without.code, 2);
  assert.match(without.messages, /^the dictionary of jieba cannot be used/);
  const long = await runModule({ call: "compare", a: "x".repeat(70_000), b: "y" });
  assert.equal(long.code, 2);
  assert.match(long.messages, /^the texts have 70001 bytes together, more than the 65536/);
});

/** Fills the section Compare and waits for the comparison. */
async function compare(page, a, b) {
  await page.click("#tab-compare");
  await page.fill("textarea >> nth=0", a);
  await page.fill("textarea >> nth=1", b);
  await page.click(".button.strong:enabled");
  await page.waitForSelector(".sides");
}

test("learning shows the engine's numbers, and they move", { skip }, async () => {
  const page = await openPage(browser, url);
  await page.waitForSelector(".bits");
  await page.waitForSelector("path.curve");
  const byHand = page.locator("section.card", { hasText: "SimHash by hand" });
  await byHand.locator("table").first().waitFor();
  assert.match(await byHand.innerText(), /CSDN/);
  const bits = await byHand.locator("tr.sum").nth(1).innerText();
  assert.match(bits.replaceAll(/\s/g, ""), /101011$/);
  await byHand.locator("button", { hasText: "Example 2" }).click();
  await byHand.locator("text=10011100").first().waitFor();
  const blocks = byHand.locator("ol li");
  await byHand.locator("input[type=range]").fill("1");
  await page.waitForFunction(() => document.querySelectorAll("ol.names li").length === 2);
  assert.equal(await blocks.count(), 2);

  const sets = page.locator("section.card", { hasText: "MinHash by hand" });
  // Two permutations, and the pairs.
  await sets.locator("table").nth(2).waitFor();
  await sets.locator("button", { hasText: "Draw a permutation" }).click();
  await page.waitForFunction(() => [...document.querySelectorAll("h3")].some((it) => it.textContent === "Permutation 3"));

  const bands = page.locator("section.card", { hasText: "S-curve" });
  const curve = () => bands.locator("path.curve").getAttribute("d");
  const before = await curve();
  await bands.locator("input[type=range]").first().fill("0.9");
  await page.waitForFunction((old) => [...document.querySelectorAll("path.curve")].every((it) => it.getAttribute("d") !== old), before);
  assert.deepEqual(await bands.locator("b.number").allInnerTexts(), ["0.90", "12", "10"]);
  assert.deepEqual(page.faults, []);
});

test("two texts are compared in the page, also from a file", { skip }, async () => {
  const page = await openPage(browser, url);
  const [a, b] = ["the boat left at dawn with nine men on board", "the boat left at dawn with ten men on board"];
  await compare(page, a, b);
  const { similarity } = JSON.parse(runCommand("compare", "--json", "--literal", a, b));
  assert.match(await page.innerText("dl.facts"), new RegExp((Math.floor(similarity * 1000) / 1000).toFixed(3)));
  await page.setInputFiles("input[type=file] >> nth=0", { name: "letter.docx", mimeType: "application/octet-stream", buffer: makeDocx(`${hostile[0]} in a letter`) });
  await page.waitForFunction(() => document.querySelector("textarea").value.includes("in a letter"));
  await page.setInputFiles("input[type=file] >> nth=1", { name: "broken.docx", mimeType: "application/octet-stream", buffer: Buffer.from("no archive") });
  await page.waitForSelector("[role=alert]");
  assert.match(await page.innerText("[role=alert]"), /broken\.docx is not read/);
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(page.faults, []);
});

test("long texts show the passages that both share", { skip }, async () => {
  const page = await openPage(browser, url);
  const words = (seed, count) => Array.from({ length: count }, (_, at) => `w${(at * seed) % 9973}x`).join(" ");
  const shared = "a passage of more than twelve words that both of these long texts have in common with one another";
  await compare(page, `${words(7, 6000)} ${shared} ${words(11, 3000)}`, `${words(13, 3000)} ${shared} ${words(17, 6000)}`);
  await page.waitForSelector("mark");
  assert.match(await page.innerText("mark >> nth=0"), /a passage of more than twelve words/);
});

test("a first visit loads one file", { skip }, async () => {
  served.length = 0;
  const page = await openPage(browser, url);
  await page.waitForSelector("path.curve");
  await page.waitForSelector(".bits");
  assert.deepEqual(served.filter((path) => path !== "/favicon.ico"), ["/"]);
});

test("jieba's dictionary is fetched when it is asked for", { skip }, async () => {
  const page = await openPage(browser, url);
  const requests = [];
  page.on("request", (request) => requests.push(request.url()));
  const [a, b] = ["渡轮在黎明时分离开了港口，船上有九个人。", "渡轮在黎明时分离开了港口，船上有十个人。"];
  await page.fill("textarea >> nth=0", a);
  await page.fill("textarea >> nth=1", b);
  const waitForTokens = (count) => page.waitForSelector(`summary:has-text("${count} tokens")`);
  await waitForTokens(18);
  assert.deepEqual(requests.filter((it) => it.startsWith("http")), []);
  await page.locator("select >> nth=1").selectOption("jieba");
  const { tokens } = JSON.parse(runCommand("compare", "--json", "--literal", "--recipe", "jieba", a, b)).a;
  assert.ok(tokens.length < 18, String(tokens.length));
  await waitForTokens(tokens.length);
  assert.deepEqual(requests.filter((it) => it.startsWith("http")), [`${url}jieba-dictionary.bin`]);
  assert.deepEqual(page.faults, []);
});

test("the page works from disk", { skip }, async () => {
  const page = await openPage(browser, pathToFileURL(pageFile).href);
  await compare(page, "the boat left at dawn with nine men on board", "the boat left at dawn with ten men on board");
  await checkPage(page, "from disk", { rules: { "color-contrast": { enabled: false } } });
});

test("the page looks right in both languages, wide and narrow, light and dark", { skip }, async () => {
  for (const locale of ["en-GB", "zh-CN"]) {
    const page = await openPage(browser, url, { locale });
    await page.waitForSelector("path.curve");
    await page.waitForSelector(".bits");
    await checkLooks(page, "learn", locale);
    await compare(page, hostile[0], `${hostile[0]} again`);
    await checkLooks(page, "compare", locale);
    await page.context().close();
  }
});

/** Runs the command over files in a folder of its own, and returns what it wrote. */
function runCommandOverFiles(given, contents) {
  const place = new Place();
  try {
    for (const [name, bytes] of Object.entries(contents)) {
      mkdirSync(dirname(place.file(name)), { recursive: true });
      writeFileSync(place.file(name), bytes);
    }
    const output = place.run(...given);
    const names = readdirSync(place.path).filter((name) => !Object.keys(contents).some((path) => path.split("/")[0] === name));
    return { output, files: Object.fromEntries(names.map((name) => [name, readFileSync(place.file(name))])) };
  } finally {
    place.remove();
  }
}

/** Fields that depend on the clock. */
const isClock = (name) => ["seconds", "stages", "bytes_per_second", "created", "index_bytes"].includes(name);
const withoutClock = (json) => JSON.parse(json, (name, value) => (isClock(name) ? undefined : value));
const dataOf = (report) => /<script type="application\/json" id="data">([^<]*)</.exec(report.toString())[1];

/** Fails unless two runs wrote the same bytes. Reports have the same data, but for the clock. */
function assertEqualRuns(own, expected, what) {
  assert.deepEqual(withoutClock(own.output), withoutClock(expected.output), what);
  assert.deepEqual(Object.keys(own.files).sort(), Object.keys(expected.files).sort(), what);
  for (const [name, bytes] of Object.entries(expected.files)) {
    if (name === "report.html") assert.deepEqual(withoutClock(dataOf(own.files[name])), withoutClock(dataOf(bytes)), what);
    else assert.ok(own.files[name].equals(bytes), `${what}: ${name} differs`);
  }
}

const dedupOutputs = ["--removed", "removed.tsv", "--clusters", "clusters.tsv", "--report", "report.html", "--json"];
/** What runs inside a page need: the system's folder for temporary files does not exist there. */
const inPage = (given) => [...given, "--scratch", "."];

test("runs over rows of every format write the bytes of the command", { skip }, async () => {
  const news = readFileSync(join(root, "examples/news.jsonl"));
  const rows = news.toString().trim().split("\n").map((line) => JSON.parse(line));
  const tsv = ["id\ttext", ...rows.map(({ id, text }) => `${id}\t${text.replaceAll(/\s/g, " ")}`)].join("\n");
  const csv = ["id,text", ...rows.map(({ id, text }) => `${id},"${text.replaceAll('"', '""')}"`)].join("\n");
  const made = runCommandOverFiles(["dedup", "news.jsonl", "-o", "news.parquet", "--annotate"], { "news.jsonl": news });
  const inputs = {
    "news.jsonl": news,
    "news.jsonl.gz": gzipSync(news),
    "news.tsv": Buffer.from(tsv),
    "news.csv": Buffer.from(csv),
    "news.txt": Buffer.from(rows.map(({ text }) => text.replaceAll(/\s/g, " ")).join("\n")),
    "news.parquet": made.files["news.parquet"],
    "sample.jsonl": Buffer.from(sampleRows()),
  };
  for (const [name, bytes] of Object.entries(inputs)) {
    const ending = /\.([a-z]+)(\.gz)?$/.exec(name)[1];
    const given = ["dedup", name, "-o", `kept.${ending}`, ...dedupOutputs];
    const own = await runOverFiles(inPage(given), { [name]: bytes });
    assert.ok(own.code < 2, `${name}: ${own.messages}`);
    assertEqualRuns(own, runCommandOverFiles(given, { [name]: bytes }), name);
  }
});

test("measures, methods and compressed outputs write the bytes of the command", { skip }, async () => {
  const news = { "a/news.jsonl": readFileSync(join(root, "examples/news.jsonl")), "sample.jsonl": Buffer.from(sampleRows()) };
  const choices = [
    ["--method", "simhash", "--distance", "6", "--verify", "none"],
    ["--verify", "levenshtein", "--threshold", "0.8"],
    ["--keep", "longest", "--recipe", "words-1"],
    ["--annotate"],
  ];
  for (const choice of choices) {
    const given = ["dedup", "a/news.jsonl", "sample.jsonl", "-o", "kept.jsonl.zst", ...dedupOutputs, ...choice];
    const own = await runOverFiles(inPage(given), news);
    assert.ok(own.code < 2, `${choice}: ${own.messages}`);
    // One thread compresses, as in a page.
    assertEqualRuns(own, runCommandOverFiles([...given, "--threads", "1"], news), choice.join(" "));
  }
});

test("passages of document files are those of the command", { skip }, async () => {
  const contents = Object.fromEntries(droppedFiles().filter(({ name }) => name !== "picture.png").map(({ name, buffer }) => [`essays/${name}`, buffer]));
  for (const more of [[], ["--reworded", "--min-length", "6"]]) {
    const given = ["passages", "essays", "-o", "passages.tsv", "--report", "report.html", "--json", ...more];
    const own = await runOverFiles(inPage(given), contents);
    assert.ok(own.code < 2, own.messages);
    const expected = runCommandOverFiles(given, contents);
    assert.ok(JSON.parse(expected.output).passages >= 3);
    assertEqualRuns(own, expected, more.join(" "));
  }
});

test("refusals of a run are sentences of the command, and leave no files", { skip }, async () => {
  const wrong = await runOverFiles(inPage(["dedup", "a.jsonl", "-o", "kept.jsonl", "--text", "body"]), { "a.jsonl": Buffer.from('{"text":"x"}\n') });
  assert.equal(wrong.code, 2);
  assert.match(wrong.messages, /body/);
  assert.deepEqual(wrong.files, {});
  const missing = await runOverFiles(inPage(["dedup", "none.jsonl", "-o", "kept.jsonl"]), {});
  assert.equal(missing.code, 2);
  assert.match(missing.messages, /none\.jsonl/);
});

test("a run that exceeds the memory of a module ends with the reason", { skip }, async () => {
  const words = Array.from({ length: 40 }, (_, at) => `word${at}`).join(" ");
  const rows = Buffer.from(Array.from({ length: 40_000 }, (_, at) => JSON.stringify({ id: at, text: `${words} ${at * 7919}` })).join("\n"));
  const given = inPage(["dedup", "rows.jsonl", "-o", "kept.jsonl"]);
  const { MemoryExhausted } = await vite.ssrLoadModule("/src/web/wasi.ts");
  await assert.rejects(runWithMemory(32, given, { "rows.jsonl": rows }), (cause) => cause instanceof MemoryExhausted && /memory allocation of \d+ bytes failed/.test(cause.message));
  assert.equal((await runWithMemory(1024, given, { "rows.jsonl": rows })).code, 0);
  // The limit of a run is told by the command itself.
  const refused = await runWithMemory(1024, [...given, "--memory", "1M"], { "rows.jsonl": rows });
  assert.equal(refused.code, 2);
  assert.match(refused.messages, /1 MB of memory are too little/);
});

test("a run that does not fit into its memory has temporary files, and the same results", { skip }, async () => {
  // Titles, of which some repeat and some nearly repeat an earlier one.
  const title = (at) => {
    const of = at % 10 < 6 ? at : Math.floor(at / 2);
    const words = Array.from({ length: 6 }, (_, word) => (of * 7919 + (word + 1) * 104_729) % 50_021);
    if (at % 10 === 9) words[5] += 1;
    return words.map((word) => word.toString(16)).join(" ");
  };
  const rows = Buffer.from(Array.from({ length: 450_000 }, (_, at) => `{"text":"${title(at)}"}\n`).join(""));
  const given = ["dedup", "rows.jsonl", "-o", "kept.jsonl", "--removed", "removed.tsv", "--forms", "off", "--json"];
  const own = await runOverFiles([...inPage(given), "--memory", "165M"], { "rows.jsonl": rows });
  assert.equal(own.code, 0, own.messages);
  assert.ok(JSON.parse(own.output).spilled.bytes > 1_000_000, own.output);
  const expected = runCommandOverFiles(given, { "rows.jsonl": rows });
  for (const name of ["kept.jsonl", "removed.tsv"]) assert.ok(own.files[name].equals(expected.files[name]), name);
});

/** Gives the section for files these files, and waits until they are listed. */
async function giveFiles(page, files) {
  await page.click("#tab-folder");
  await page.setInputFiles("input[type=file]", files);
  await page.waitForSelector(".drop ul.names li");
}

/** Returns the bytes that the page saves under a name. */
async function save(page, name) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(`a[download="${name}"]`)]);
  return readFileSync(await download.path());
}

test("rows are deduplicated in the page: kept rows, tables and the report are those of the command", { skip }, async () => {
  const page = await openPage(browser, pathToFileURL(pageFile).href);
  const rows = Buffer.from(sampleRows());
  await giveFiles(page, [{ name: "sample.jsonl", mimeType: "application/octet-stream", buffer: rows }]);
  const given = ["dedup", "sample.jsonl", "-o", "kept.jsonl", "--removed", "removed.tsv", "--rejected", "rejected.jsonl", "--clusters", "clusters.tsv", "--report", "report.html", "--threshold", "0.75"];
  assert.equal(await page.innerText("code"), `lookalike ${given.join(" ")}`);
  await page.click(".button.strong:enabled");
  await page.waitForSelector("a[download]");
  // A page states its language, which the report has then, too.
  const expected = runCommandOverFiles([...given, "--lang", "en"], { "sample.jsonl": rows });
  for (const name of ["kept.jsonl", "removed.tsv", "rejected.jsonl", "clusters.tsv"]) assert.ok((await save(page, name)).equals(expected.files[name]), name);
  assert.deepEqual(withoutClock(dataOf(await save(page, "report.html"))), withoutClock(dataOf(expected.files["report.html"])));
  // Two rows are bad, which the command says.
  assert.match(await page.innerText("pre.given"), /sample\.jsonl:\d+: /);
  const report = page.frameLocator("iframe.report");
  await report.locator(".stat").first().waitFor();
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(page.faults, []);
});

test("documents show the passages that they share", { skip }, async () => {
  const page = await openPage(browser, url);
  await giveFiles(page, droppedFiles().filter(({ name }) => name !== "picture.png"));
  assert.ok(await page.isChecked("input[value=passages]"));
  await page.click(".button.strong:enabled");
  await page.waitForSelector("a[download='passages.tsv']");
  assert.match((await save(page, "passages.tsv")).toString(), /letter\.docx/);
  await page.frameLocator("iframe.report").locator("mark").first().waitFor();
  assert.deepEqual(page.faults, []);
});

test("a run can be ended, and the page stays alive", { skip }, async () => {
  const page = await openPage(browser, url);
  const words = Array.from({ length: 40 }, (_, at) => `word${at}`).join(" ");
  const rows = Array.from({ length: 60_000 }, (_, at) => JSON.stringify({ id: at, text: `${words} ${at * 7919} ${at}` })).join("\n");
  await giveFiles(page, [{ name: "rows.jsonl", mimeType: "application/octet-stream", buffer: Buffer.from(rows) }]);
  await page.click(".button.strong:enabled");
  const status = page.locator("[role=status]");
  await page.waitForFunction(() => /: .+ MB/.test(document.querySelector(".line [role=status]").textContent));
  assert.match(await status.last().innerText(), /reading|comparing|finding|writing/);
  await page.click("button:has-text('Cancel')");
  await page.click(".drop button:has-text('Remove all')");
  await giveFiles(page, [{ name: "few.jsonl", mimeType: "application/octet-stream", buffer: Buffer.from('{"text":"one two three"}\n{"text":"one two three"}\n') }]);
  await page.click(".button.strong:enabled");
  await page.waitForSelector("a[download='kept.jsonl']");
  assert.deepEqual(page.faults, []);
});

test("the section for files looks right in both languages", { skip }, async () => {
  for (const locale of ["en-GB", "zh-CN"]) {
    const page = await openPage(browser, url, { locale });
    await giveFiles(page, [{ name: "sample.jsonl", mimeType: "application/octet-stream", buffer: Buffer.from(sampleRows()) }]);
    await page.click(".button.strong:enabled");
    await page.waitForSelector("iframe.report");
    await page.frameLocator("iframe.report").locator(".stat").first().waitFor();
    await checkLooks(page, "files", locale);
    await page.context().close();
  }
});

test("PDF files are left out, and the page says why", { skip }, async () => {
  for (const [locale, reason, refusal] of [
    ["en-GB", /^almanac\.pdf: left out\. A page reads no PDF files, because/, /almanac\.pdf is not read: it is a PDF file/],
    ["zh-CN", /^almanac\.pdf 未读取：本页不读 PDF 文件，因为/, /没有读取 almanac\.pdf：它是 PDF 文件/],
  ]) {
    const page = await openPage(browser, url, { locale });
    const pdf = { name: "almanac.pdf", mimeType: "application/pdf", buffer: readFileSync(join(root, "examples/archive/almanac.pdf")) };
    await giveFiles(page, [pdf, ...droppedFiles().filter(({ name }) => ["essay.txt", "letter.docx"].includes(name))]);
    assert.match(await page.innerText("[role=alert]"), reason);
    assert.doesNotMatch(await page.innerText("code"), /almanac/);
    await page.click(".button.strong:enabled");
    await page.waitForSelector("a[download='passages.tsv']");
    assert.match((await save(page, "passages.tsv")).toString(), /letter\.docx/);
    await page.click("#tab-compare");
    await page.setInputFiles("input[type=file] >> nth=0", pdf);
    await page.waitForSelector("[role=alert]");
    assert.match(await page.innerText("[role=alert]"), refusal);
    await page.context().close();
  }
});

test("files and folders are dropped on a page that was opened from disk", { skip }, async () => {
  const place = new Place();
  try {
    mkdirSync(place.file("class/b"), { recursive: true });
    for (const name of ["one.txt", "two.txt", "class/3.txt", "class/b/4.txt"]) place.write(name, `${name} has a text of its own and some words that are in all of them`);
    for (const name of ["class/desktop.ini", "jakob.pages", "Thumbs.db"]) place.write(name, "x");
    const page = await openPage(browser, pathToFileURL(pageFile).href);
    await page.click("button:has-text('compare files')");
    await page.waitForSelector(".drop");
    await dropPaths(page, ".drop", ["one.txt", "two.txt", "jakob.pages", "Thumbs.db"].map(place.file));
    await page.waitForSelector(".drop ul.names li");
    const names = async () => (await page.locator(".drop ul.names li").allInnerTexts()).map((it) => it.split(" ")[0]).sort();
    assert.deepEqual(await names(), ["one.txt", "two.txt"]);
    assert.match(await page.innerText("[role=alert]"), /jakob\.pages: not compared\. Export or save as \.docx\.[^]*Thumbs\.db: not compared, because/);
    await dropPaths(page, ".drop", [place.file("class")]);
    await page.waitForSelector(".drop ul.names li:nth-child(4)");
    assert.deepEqual(await names(), ["class/3.txt", "class/b/4.txt", "one.txt", "two.txt"]);
    await page.click("button[aria-label='Remove one.txt']");
    assert.ok(!(await names()).includes("one.txt"));
    assert.doesNotMatch(await page.innerText("code"), /one\.txt|jakob/);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  } finally {
    place.remove();
  }
});

test("a folder is chosen with the button, and essays are compared with given sources", { skip }, async () => {
  const place = new Place();
  try {
    mkdirSync(place.file("class"));
    const shared = "a passage of more than twelve words that this essay has in common with a page of the web";
    place.write("class/ann.txt", `An essay of one author says that ${shared}.`);
    place.write("class/ben.txt", `An essay of another author says that ${shared}.`);
    place.write("class/.DS_Store", "x");
    place.write("web.txt", `On the web: ${shared}!`);
    const page = await openPage(browser, url, { locale: "zh-CN" });
    await page.click("#tab-folder");
    await page.setInputFiles("input[webkitdirectory]", place.file("class"));
    await page.waitForSelector(".drop ul.names li:nth-child(2)");
    await page.setInputFiles("label:has-text('与可能的来源比较') input", place.file("web.txt"));
    assert.match(await page.innerText("code"), /^lookalike passages class\/ann\.txt class\/ben\.txt --against web\.txt -o/);
    await page.click(".button.strong:enabled");
    await page.waitForSelector("a[download='passages.tsv']");
    const table = (await save(page, "passages.tsv")).toString().trim().split("\n").slice(1).map((row) => row.split("\t").slice(0, 2).join());
    assert.deepEqual(table, ["class/ann.txt,web.txt", "class/ben.txt,web.txt"]);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  } finally {
    place.remove();
  }
});

test("more files than the memory of a page allows are refused", { skip }, async () => {
  const place = new Place();
  try {
    for (const [job, name, limit] of [["dedup", "rows.jsonl", 1_000_000_000], ["passages", "essay.md", 200_000_000]]) {
      const page = await openPage(browser, url);
      place.write(name, "");
      for (const [size, isRefused] of [[limit, false], [limit + 1, true]]) {
        truncateSync(place.file(name), size);
        await giveFiles(page, place.file(name));
        assert.ok(await page.isChecked(`input[value=${job}]`));
        assert.equal(await page.locator(".button.strong").isDisabled(), isRefused, `${name}: ${size}`);
        assert.equal(await page.locator("[role=alert]").count(), isRefused ? 1 : 0);
        if (isRefused) assert.match(await page.innerText("[role=alert]"), /a page takes at most .*, because a browser gives it 4 GiB of memory: give fewer files, or use the command/);
        await page.click(".drop button:has-text('Remove all')");
      }
      await page.context().close();
    }
  } finally {
    place.remove();
  }
});
