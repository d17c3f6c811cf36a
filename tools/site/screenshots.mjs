// Takes the pictures of a report: `node screenshots.mjs PROGRAM` writes four PNG files to docs/images/.
//
// The report is that of examples/news.jsonl: its overview (overview-*.png), and the removal that is nearest to the threshold
// beside the kept document (report-*.png). It needs Chromium and the packages of console/ (`npm ci` there).
//
// Browsers and fonts draw the same page in different pixels. So each file has the words of the page in its field
// `Description`, and `node screenshots.mjs PROGRAM --check` writes nothing and fails if the page has others.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { crc32 } from "node:zlib";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { chromium } = createRequire(join(root, "console/package.json"))("playwright-core");

const [given, option] = process.argv.slice(2);
const isCheck = option === "--check";
const program = resolve(given);

/** Bytes of a PNG file before its first chunk, and of the chunk that is always first. */
const [signatureBytes, headerBytes] = [8, 25];
/** The field of a PNG file with words: its keyword, no compression, no language. */
const fieldStart = Buffer.from("Description\0\0\0\0\0");

/** Returns a chunk of a PNG file. */
function makeChunk(type, content) {
  const body = Buffer.concat([Buffer.from(type), content]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(content.length, 0);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return chunk;
}

/** Returns a PNG file with words in it. */
function addWords(png, words) {
  const at = signatureBytes + headerBytes;
  return Buffer.concat([png.subarray(0, at), makeChunk("iTXt", Buffer.concat([fieldStart, Buffer.from(words)])), png.subarray(at)]);
}

/** Returns the words in a PNG file; an empty text without any. */
function readWords(png) {
  for (let at = signatureBytes; at < png.length; at += png.readUInt32BE(at) + 12) {
    const content = png.subarray(at + 8, at + 8 + png.readUInt32BE(at));
    if (png.toString("latin1", at + 4, at + 8) === "iTXt" && content.subarray(0, fieldStart.length).equals(fieldStart)) return content.toString("utf8", fieldStart.length);
  }
  return "";
}

/** Returns the words of the section that the page shows, without speeds, which differ from run to run and are left out of short runs. */
async function findWords(page) {
  const words = await page.evaluate(() => ["header", "#section"].map((part) => document.querySelector(part).innerText).join("\n"));
  return words.replace(/\s*·?\s*[\d.,]+\s*MB\/s/g, "");
}

const stale = [];
/** Takes a picture, or compares the words of the one that there is. */
async function picture(page, name) {
  await page.waitForTimeout(800);
  const file = join(root, "docs/images", name);
  const words = await findWords(page);
  if (!isCheck) writeFileSync(file, addWords(await page.screenshot(), words));
  else if (readWords(readFileSync(file)) !== words) stale.push(name);
}

const place = mkdtempSync(join(tmpdir(), "report-"));
cpSync(join(root, "examples"), join(place, "examples"), { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const language of ["en", "zh"]) {
  const report = `report-${language}.html`;
  execFileSync(program, ["dedup", "examples/news.jsonl", "--report", report, "--lang", language, "--quiet"], { cwd: place });
  const page = await browser.newPage({ viewport: { width: 1000, height: 620 }, locale: language === "zh" ? "zh-CN" : "en-US", colorScheme: "light" });
  await page.goto(pathToFileURL(join(place, report)).href);
  await picture(page, `overview-${language}.png`);
  await page.getByText(language === "zh" ? "核对" : "Review", { exact: true }).first().click();
  await picture(page, `report-${language}.png`);
  await page.close();
}
await browser.close();
rmSync(place, { recursive: true });
if (stale.length > 0) {
  console.error(`docs/images/ is out of date (${stale.join(", ")}): run tools/site/images PROGRAM`);
  process.exitCode = 1;
}
