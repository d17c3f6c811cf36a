// Measures the page in the browser beside the command; writes bench/results/page.json, page_opening.json and page_sizes.json.
//
//     node bench/compare/page.mjs PROGRAM EN_DOCS.jsonl [--busy] [--debug]
//
// `npm run web` in console/ has built the page, which is opened from disk in Chromium. Times are medians of some runs, and every
// run writes the same bytes as the command on one thread. Processor seconds are those of all threads of the page, and depend
// little on other work: with --busy, each large run is made once and they alone are stored. With --debug, PROGRAM is no release
// build, and its times are not stored.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir, totalmem } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { launch, openPage } from "../../console/tests/browser/support.mjs";

const root = resolve(import.meta.dirname, "../..");
const pageFile = join(root, "target/web/index.html");
const [program, documents, ...flags] = process.argv.slice(2);
if (!documents) throw new Error("usage: node bench/compare/page.mjs PROGRAM EN_DOCS.jsonl [--busy] [--debug]");
const [isBusy, isDebug] = ["--busy", "--debug"].map((flag) => flags.includes(flag));
if (loadavg()[0] > 0.7 && !isBusy) throw new Error(`the machine is busy (load ${loadavg()[0]}); wait until it is below 0.7, or give --busy`);

/** Numbers that look random, the same in every run. */
let seed = 59;
const random = (below) => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * below);
};
/** A word by its rank; small ranks are drawn more often, as in texts of people. */
const word = () => `w${Math.floor(random(1000) ** 2 / 50).toString(36)}`;
const words = (count) => Array.from({ length: count }, word).join(" ");

/** Sixty essays of some 1,500 words, of which each second one has two passages of the one before it. */
function makeEssays(folder) {
  let before = "";
  return Array.from({ length: 60 }, (_, at) => {
    const own = words(1500);
    const shared = at % 2 === 1 ? [before.slice(0, 400), before.slice(2000, 2900)] : [];
    before = own;
    const name = `essay-${String(at).padStart(2, "0")}.txt`;
    writeFileSync(join(folder, name), [own.slice(0, 3000), ...shared, own.slice(3000)].join("\n"));
    return name;
  });
}

/** A million titles, of which two in five repeat an earlier one, some with a word more. */
function makeTitles(folder) {
  const titles = [];
  for (let at = 0; at < 1_000_000; at += 1) {
    const repeats = at > 0 && random(5) < 2;
    titles.push(repeats ? titles[random(at)] + (random(4) === 0 ? ` ${word()}` : "") : words(8 + random(5)));
  }
  writeFileSync(join(folder, "titles.jsonl"), titles.map((text, id) => JSON.stringify({ id, text })).join("\n"));
  return "titles.jsonl";
}

const round = (value) => Number(value.toFixed(2));
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** Returns the processor seconds of all pages so far. */
async function readProcessorSeconds(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  return processInfo.filter(({ type }) => type === "renderer").reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

/** Presses the button of a page, and resolves to the seconds until the result is shown. */
const pressRun = () =>
  new Promise((resolve, reject) => {
    const begun = performance.now();
    const watch = new MutationObserver(() => {
      if (document.querySelector("a[download]")) resolve((performance.now() - begun) / 1000);
      const problem = document.querySelector("[role=alert]");
      if (problem) reject(new Error(problem.textContent));
    });
    watch.observe(document.body, { childList: true, subtree: true });
    document.querySelector(".button.strong:enabled").click();
  });

/** Runs the work in a new page, and returns its times and the bytes of a table that it saves. */
async function runInPage(browser, files, table) {
  const page = await openPage(browser, pathToFileURL(pageFile).href);
  await page.waitForSelector("path.curve");
  await page.click("#tab-folder");
  await page.setInputFiles("input[type=file]", files);
  await page.waitForSelector(".drop ul.names li");
  const before = await readProcessorSeconds(browser);
  const seconds = await page.evaluate(pressRun);
  const processor = (await readProcessorSeconds(browser)) - before;
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(`a[download="${table}"]`)]);
  const bytes = readFileSync(await download.path());
  await page.context().close();
  return { seconds, processor, bytes };
}

/** Runs the command as the page shows it, on one thread, and returns its times and the bytes of a table that it writes. */
function runCommand(folder, given, table) {
  const line = 'TIMEFORMAT="%R %U %S"; time "$0" "$@" 2>/dev/null';
  const options = { cwd: folder, encoding: "utf8", env: { ...process.env, LANG: "C" } };
  const { status, stderr } = spawnSync("bash", ["-c", line, resolve(program), ...given, "--threads", "1", "--quiet"], options);
  assert.equal(status, 0, `${given.join(" ")}: ${stderr}`);
  const [seconds, user, system] = stderr.trim().split(" ").map(Number);
  return { seconds, processor: user + system, bytes: readFileSync(join(folder, table)) };
}

async function compareRuns(browser, folder, what, names, given, table, runs) {
  const files = names.map((name) => join(folder, name));
  const own = [];
  const theirs = [];
  for (let run = 0; run < runs; run += 1) {
    own.push(await runInPage(browser, files, table));
    theirs.push(runCommand(folder, given, table));
    assert.ok(own.at(-1).bytes.equals(theirs.at(-1).bytes), `${what}: ${table} differs`);
  }
  const middle = (measured, time) => round(median(measured.map((run) => run[time])));
  const processor = middle(own, "processor");
  return {
    what,
    megabytes: round(files.reduce((sum, file) => sum + statSync(file).size, 0) / 1e6),
    seconds: isBusy ? null : middle(own, "seconds"),
    processor_seconds: processor,
    command_processor_seconds: isDebug ? null : middle(theirs, "processor"),
    ratio: isDebug ? null : round(processor / middle(theirs, "processor")),
  };
}

/** Opens the page from disk, and returns the seconds until something is painted and until the engine has answered. */
async function measureOpening(browser) {
  const page = await openPage(browser, pathToFileURL(pageFile).href);
  await page.waitForSelector("path.curve");
  const measured = await page.evaluate(() => [performance.getEntriesByName("first-contentful-paint")[0].startTime / 1000, performance.now() / 1000]);
  await page.context().close();
  return measured;
}

async function measureRuns(browser, folder) {
  const outputs = ["--removed", "removed.tsv", "--clusters", "clusters.tsv", "--report", "report.html", "--threshold", "0.75"];
  const dedup = (file) => ["dedup", file, "-o", "kept.jsonl", ...outputs];
  const essays = makeEssays(folder);
  const passages = ["passages", ...essays, "-o", "passages.tsv", "--report", "report.html", "--min-length", "12"];
  const titles = makeTitles(folder);
  const articles = basename(documents);
  symlinkSync(resolve(documents), join(folder, articles));
  const runs = isBusy ? 1 : 3;
  return [
    await compareRuns(browser, folder, "passages of 60 essays", essays, passages, "passages.tsv", 5),
    await compareRuns(browser, folder, "`dedup` of a million titles", [titles], dedup(titles), "removed.tsv", runs),
    await compareRuns(browser, folder, "`dedup` of en_docs", [articles], dedup(articles), "removed.tsv", runs),
  ];
}

async function measureOpenings(browser) {
  const opened = [];
  for (let run = 0; run < 5; run += 1) opened.push(await measureOpening(browser));
  return ["something is painted", "the engine has answered"].map((what, at) => ({ what, seconds: round(median(opened.map((times) => times[at]))) }));
}

function measureSizes() {
  const html = readFileSync(pageFile);
  const sizes = {
    "compressed with gzip: all that a first visit loads": gzipSync(html).length,
    "compressed with Brotli": brotliCompressSync(html).length,
    "the file": html.length,
  };
  return Object.entries(sizes).map(([what, bytes]) => ({ what, megabytes: round(bytes / 1e6) }));
}

const folder = mkdtempSync(join(tmpdir(), "lookalike-page-"));
const browser = await launch();
try {
  const machine = { cpu: cpus()[0].model, cores: cpus().length, memory_gib: round(totalmem() / 2 ** 30), browser: `Chromium ${browser.version()}` };
  const store = (name, measured) => writeFileSync(join(root, `bench/results/${name}.json`), `${JSON.stringify({ machine, measured }, null, 1)}\n`);
  store("page_sizes", measureSizes());
  if (!isBusy) store("page_opening", await measureOpenings(browser));
  store("page", await measureRuns(browser, folder));
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
