// A browser, reports to open in it, and checks that all pages share.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { crc32 } from "node:zlib";
import { chromium } from "playwright-core";

const root = resolve(import.meta.dirname, "../../..");
export const program = process.env.LOOKALIKE ?? join(root, "target/debug/lookalike");
/** What starts the program: `wine` if `LOOKALIKE_RUNNER` says so and it is one for Windows. */
const starter = process.env.LOOKALIKE_RUNNER ? [process.env.LOOKALIKE_RUNNER, program] : [program];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns the path of Chromium; null where there is none. */
function findChromium() {
  const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  return process.env.CHROMIUM ?? places.find((it) => existsSync(it)) ?? null;
}

/** Why the tests of this folder cannot run here; false if they can. */
export const skip = (() => {
  if (!findChromium()) return "there is no Chromium here";
  if (!existsSync(program)) return `there is no ${program}: build it first`;
  return false;
})();

export const launch = () => chromium.launch({ executablePath: findChromium(), args: ["--no-sandbox", "--disable-gpu"] });

/** A folder that is removed at the end. */
export class Place {
  path = mkdtempSync(join(tmpdir(), "lookalike-browser-"));
  file = (name) => join(this.path, name);
  url = (name) => pathToFileURL(this.file(name)).href;
  write = (name, text) => writeFileSync(this.file(name), text);
  read = (name) => readFileSync(this.file(name), "utf8");
  remove = () => rmSync(this.path, { recursive: true, force: true });

  /** Runs the program here and returns its standard output. Bad rows (exit code 1) are no failure. */
  run(...args) {
    try {
      return execFileSync(program, args, { cwd: this.path, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, LANG: "C" } });
    } catch (error) {
      if (error.status === 1) return error.stdout;
      throw new Error(`lookalike ${args.join(" ")}: ${error.stderr}`);
    } finally {
      const report = args[args.indexOf("--report") + 1];
      if (builtReport && args.includes("--report")) this.write(report, moveData(this.read(report)));
    }
  }
}

/** The page of reports as it was built last, which the variable `BUILT_REPORT` puts in the place of the one in the program. */
const builtReport = process.env.BUILT_REPORT ? readFileSync(join(root, "crates/lookalike-batch/pages/report.html"), "utf8") : null;

/** Returns the page as it was built last with the data of a report. */
const moveData = (report) => builtReport.replace("__LOOKALIKE_DATA__", () => /id="data">(.*?)<\/script>/s.exec(report)[1]);

/**
 * The console as it was built last, which the variable `BUILT_CONSOLE` puts in the place of the one in the program. So a
 * change of the page is tried without compiling the program.
 */
const builtConsole = process.env.BUILT_CONSOLE ? join(root, "crates/lookalike-server/pages/console") : null;

async function showBuiltConsole(context, url) {
  if (!builtConsole) return;
  const [body, policy] = ["html", "policy"].map((kind) => readFileSync(`${builtConsole}.${kind}`, "utf8"));
  const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": policy };
  await context.route((it) => it.origin === url && it.pathname === "/", (route) => route.fulfill({ body, headers }));
}

/** Longest time for a step of a page. A machine that builds something else takes many times as long as one that is idle. */
const mostMilliseconds = 180_000;

/** Opens a page and fails on errors, on blocked content and on any request that leaves the file. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ locale: "en-GB", viewport: { width: 1440, height: 900 }, acceptDownloads: true, ...options });
  context.setDefaultTimeout(mostMilliseconds);
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") page.faults.push(message.text());
  });
  page.on("request", (request) => {
    const own = [url.startsWith("http") ? new URL(url).origin : "file:", "blob:"];
    if (!own.some((it) => request.url().startsWith(it))) page.faults.push(`request to ${request.url()}`);
  });
  await page.goto(url);
  return page;
}

/** Starts a service on a free port, and waits until it answers. */
export async function startService(place, data, environment = {}) {
  const probe = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => probe.once("listening", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  const child = spawn(starter[0], [...starter.slice(1), "serve", "--data", place.file(data), "--listen", `127.0.0.1:${port}`, "--snapshots", place.file(`${data}-snapshots`)], {
    stdio: "ignore",
    cwd: place.path,
    env: { ...process.env, ...environment },
  });
  const url = `http://127.0.0.1:${port}`;
  for (let attempt = 0; attempt < 200; attempt += 1) {
    if (await fetch(`${url}/livez`).then((it) => it.ok, () => false)) return { child, url };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the service does not answer");
}

/** Starts a service with the sample rows in the collection `news`. */
export async function startNews(place) {
  const service = await startService(place, "open");
  const put = { method: "PUT", headers: { "content-type": "application/json" }, body: JSON.stringify({ threshold: 0.6 }) };
  assert.equal((await fetch(`${service.url}/v1/collections/news`, put)).status, 201);
  const rows = sampleRows().split("\n").filter((row) => row.startsWith('{"id"') && row.includes('"text"')).join("\n");
  const post = { method: "POST", headers: { "content-type": "application/x-ndjson" }, body: rows };
  assert.equal((await fetch(`${service.url}/v1/collections/news/documents`, post)).status, 200);
  return service;
}

/** Opens the console at a place of it, such as `#/clusters/news`. */
export async function openConsole(browser, url, options = {}, place = "") {
  const context = await browser.newContext({ locale: "en-GB", viewport: { width: 1440, height: 900 }, ...options });
  context.setDefaultTimeout(mostMilliseconds);
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) page.faults.push(`request to ${request.url()}`);
  });
  await showBuiltConsole(context, url);
  await page.goto(`${url}/${place}`);
  return page;
}

/** Holds back the answers to these requests of a page until they are released. */
export async function hold(page, pattern) {
  const held = {};
  const released = new Promise((resolve) => (held.release = resolve));
  held.asked = new Promise((resolve) => (held.ask = resolve));
  await page.route(pattern, async (route) => {
    held.ask();
    await released;
    await route.continue();
  });
  return held;
}

/** Waits for an element. The message of a failure has the text of the page. */
async function shown(page, selector) {
  const problem = page.locator("[role=alert]");
  try {
    await page.locator(selector).or(problem).first().waitFor();
  } catch (error) {
    throw new Error(`${error.message}\nthe page says: ${await page.innerText("body")}`);
  }
  assert.deepEqual(await problem.allInnerTexts(), []);
}

/** Fills each section of the console, so that it shows what it has. */
export const openSections = {
  overview: (page) => page.waitForSelector(".stat"),
  collections: async (page) => {
    await page.waitForSelector("#collections-0");
    await page.click("button:has-text('…')");
  },
  check: async (page) => {
    await page.fill("textarea", `${hostile[0]} once more`);
    await page.click(".button.strong");
    await shown(page, ".sides");
  },
  documents: async (page) => {
    await shown(page, ".facts");
    await page.click(".card details summary");
    await page.click("button:has-text('…')");
  },
  clusters: async (page) => {
    await page.waitForSelector(".graph .member");
    await shown(page, ".sides");
  },
  label: async (page) => {
    await page.click(".button.strong:enabled");
    await page.waitForSelector(".marks");
    for (const key of ["y", "n", "y"]) await page.keyboard.press(key);
    await page.waitForSelector("path.curve", { state: "attached" });
  },
  passages: async (page) => {
    await page.setInputFiles("input[type=file] >> nth=0", droppedFiles());
    await page.click(".button.strong:enabled");
    await page.waitForSelector(".sides");
  },
  administration: (page) => page.waitForSelector("h2:has-text('Aliases'), h2:has-text('别名')"),
  compare: async (page) => {
    await page.fill("textarea >> nth=0", "the boat left at dawn with nine men on board");
    await page.fill("textarea >> nth=1", "the boat left at dawn with ten men on board");
    await page.click(".button.strong");
    await shown(page, ".sides");
  },
};

/** Returns a `.docx` file of one paragraph: a ZIP archive with one file that is not compressed. */
export function makeDocx(text) {
  const name = Buffer.from("word/document.xml");
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const content = Buffer.from(`<w:document xmlns:w="w"><w:body><w:p><w:r><w:t>${escaped}</w:t></w:r></w:p></w:body></w:document>`);
  const numbers = (...parts) => Buffer.concat(parts.map(([value, bytes]) => {
    const written = Buffer.alloc(bytes);
    written.writeUIntLE(value, 0, bytes);
    return written;
  }));
  const sizes = [[0, 2], [0, 2], [0, 2], [33, 2], [crc32(content), 4], [content.length, 4], [content.length, 4], [name.length, 2], [0, 2]];
  const local = Buffer.concat([numbers([0x04034b50, 4], [20, 2], ...sizes), name, content]);
  const central = Buffer.concat([numbers([0x02014b50, 4], [20, 2], [20, 2], ...sizes, [0, 2], [0, 2], [0, 2], [0, 4], [0, 4]), name]);
  const end = numbers([0x06054b50, 4], [0, 2], [0, 2], [1, 2], [1, 2], [central.length, 4], [local.length, 4], [0, 2]);
  return Buffer.concat([local, central, end]);
}

/** Files as a user drops them: texts of several kinds with a passage in common, some of them hostile, one in GB18030, and others that are no documents. */
export function droppedFiles() {
  const shared = "a passage of more than twelve words that two of these files have in common with one another";
  const file = (name, buffer) => ({ name, mimeType: "application/octet-stream", buffer: Buffer.from(buffer) });
  return [
    file("essay.txt", `An essay begins in its own words. ${shared}. ${hostile[0]} ${hostile[2]}`),
    file("notes.jsonl", `${JSON.stringify({ id: "<b>row</b> 1", text: `Notes say that ${shared}, and then ${hostile[1]}` })}\nno JSON\n`),
    file("letter.docx", makeDocx(`A letter quotes ${shared} <b>& more</b> ${hostile[0]}`)),
    file("page.html", `<!doctype html><title>page</title><script>globalThis.hacked = 3</script><p>A page says that <b>${shared}</b>.`),
    file("broken.docx", "no archive"),
    file("picture.png", "PNG"),
    // 一篇文章 in GB18030.
    file("chinese.txt", [0xd2, 0xbb, 0xc6, 0xaa, 0xce, 0xc4, 0xd5, 0xc2]),
  ];
}

/** Drops files and folders as a file manager does. */
export async function dropPaths(page, target, paths) {
  const { x, y, width, height } = await page.locator(target).first().boundingBox();
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: paths, dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) {
    await session.send("Input.dispatchDragEvent", { type, x: x + width / 2, y: y + height / 2, data });
  }
}

/** Fails if the page has faults or if axe finds one. `options` are those of axe. */
export async function checkPage(page, what, options = {}) {
  assert.deepEqual(page.faults, [], what);
  // Parsing it takes a third of a second, so that a page has it once.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  const found = await page.evaluate((given) => globalThis.axe.run(document, { resultTypes: ["violations"], ...given }), options);
  const told = found.violations.map((it) => `${it.id}: ${it.nodes.map((node) => `${node.html.slice(0, 120)} ${node.failureSummary}`).join("; ")}`);
  assert.deepEqual(told, [], what);
}

/** Widths of a screen and of a phone, in pixels. */
const widths = [1440, 390];
const withoutContrast = { rules: { "color-contrast": { enabled: false } } };

/**
 * Checks what a page shows now on a screen and on a phone, in light and in dark.
 *
 * Contrast takes nine tenths of the time of axe. It depends on the colours, hardly on the width and not on the language,
 * so English has it checked in light and dark on a screen, and Chinese in dark on a phone. All other rules run for all
 * combinations.
 */
export async function checkLooks(page, what, locale) {
  for (const width of widths) {
    await page.setViewportSize({ width, height: 844 });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      const hasContrast = locale === "en-GB" ? width === widths[0] : width === widths[1] && colorScheme === "dark";
      await checkPage(page, `${what}, ${colorScheme}, ${locale}, ${width}`, hasContrast ? {} : withoutContrast);
    }
    await checkWidth(page, `${what}, ${locale}, ${width}`);
  }
}

/** Fails if the page is wider than its window. */
export async function checkWidth(page, what) {
  const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide <= window, `${what}: ${wide} pixels in a window of ${window}`);
}

export const hostile = [
  "</script><script>globalThis.hacked = 1</script><img src=x onerror='globalThis.hacked = 2'> <!-- a text that tries to be markup, and is long enough",
  "the direction \u202eof this text is turned\u202c and it has \0 NULs \u0007 bells \u200b and spaces of no width in it",
  "emoji 👩‍👩‍👧‍👦 🏴‍☠️ 𝄞 and combining marks ȩ̃̂ stay whole in a text that has a few more words than the others here",
];

/** Rows with near-duplicates, doubtful ones, copies that differ before normalisation, hostile texts and bad rows. */
export function sampleRows() {
  const words = "the old boat left the quiet harbour at dawn with nine men on board and a small black dog that nobody wanted to keep at home for long".split(" ");
  const chinese = "這艘舊船在黎明時分離開了安靜的港口船上有九個人和一隻沒有人願意長久養在家裡的小黑狗他們要去很遠的地方捕魚";
  const rows = [];
  const add = (id, text) => rows.push(JSON.stringify({ id, text }));
  for (let group = 0; group < 12; group += 1) {
    const base = words.map((word, at) => `${word}${group * 31 + at}`);
    add(`g${group}-0`, base.join(" "));
    for (let copy = 1; copy <= 1 + (group % 4); copy += 1) {
      const edited = base.slice();
      for (let edit = 0; edit < copy; edit += 1) edited[3 + edit * 6] = `other${copy}${edit}`;
      add(`g${group}-${copy}`, edited.join(" "));
    }
  }
  add("case-0", `${words.join(" ")}.\nA second line of this text.\nA third line.\nA fourth.\nA fifth.`);
  add("case-1", `${words.join(" ").toUpperCase()}!\nA second line of this text.\nA third line.\nA fourth.\nA fifth.`);
  add("zh-0", chinese);
  add("zh-1", chinese.replace("黎明", "清晨"));
  add("zh-2", chinese.replaceAll("這", "这").replaceAll("養", "养"));
  hostile.forEach((text, at) => {
    add(`<b>hostile</b> ${at} \u202e${at}`, text);
    add(`hostile copy ${at}`, `${text} again`);
  });
  add(`a long id ${"without-a-space-".repeat(14)}`, chinese.replace("黎明", "清晨").replace("小黑狗", "小白狗"));
  rows.push("this is no JSON", JSON.stringify({ id: "no text" }));
  return `${rows.join("\n")}\n`;
}
