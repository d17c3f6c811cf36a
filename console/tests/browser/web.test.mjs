// The page that does the work in the browser, and its module beside the command.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { createServer as createVite } from "vite";
import { checkLooks, checkPage, hostile, launch, makeDocx, openPage, program, skip as skipBrowser } from "./support.mjs";

const root = resolve(import.meta.dirname, "../../..");
const folder = join(root, "target/web");
const pageFile = join(folder, "index.html");
const skip = skipBrowser || (existsSync(pageFile) ? false : `there is no ${pageFile}: npm run web builds it`);

let browser, vite, server, url, runModule;

before(async () => {
  if (skip) return;
  vite = await createVite({ configFile: false, logLevel: "error", server: { middlewareMode: true, ws: false }, appType: "custom" });
  const { runProgram } = await vite.ssrLoadModule("/src/web/wasi.ts");
  const packed = /id="module">([^<]*)</.exec(readFileSync(pageFile, "utf8"))[1];
  const module = await WebAssembly.compile(gunzipSync(Buffer.from(packed, "base64")));
  runModule = async (call, attachment = Buffer.alloc(0)) => {
    const ended = await runProgram(module, new Uint8Array(Buffer.concat([Buffer.from(`${JSON.stringify(call)}\n`), attachment])));
    return { code: ended.code, output: Buffer.from(ended.output).toString(), messages: ended.messages };
  };
  server = createServer((request, response) => {
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
