// Takes pictures of every page: node tests/browser/pictures.mjs FOLDER [PAGE…]
//
// The pages are the console of a service with sample rows, reports of each kind, and the page that does the work in the
// browser, if it was built. Each section is taken on a screen and on a phone, in light and in dark, in English and in Chinese.
// A picture of the name console-label-390-dark-zh.png is for the eye; what a program can check the other files check.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Place, droppedFiles, hold, launch, openConsole, openPage, openSections, sampleRows, startNews } from "./support.mjs";

const root = resolve(import.meta.dirname, "../../..");
const [folder, ...wanted] = process.argv.slice(2);
if (!folder) throw new Error("usage: node tests/browser/pictures.mjs FOLDER [PAGE…], for example console or report-dedup");
mkdirSync(folder, { recursive: true });
const place = new Place();
const browser = await launch();
const isWanted = (page) => wanted.length === 0 || wanted.some((it) => page.startsWith(it));

/** Calls `take` with the options of each look and its name. */
async function forLooks(take) {
  for (const [width, height] of [[1440, 900], [390, 844]]) {
    for (const colorScheme of ["light", "dark"]) {
      for (const locale of ["en-GB", "zh-CN"]) {
        await take({ colorScheme, locale, viewport: { width, height } }, `${width}-${colorScheme}-${locale.slice(0, 2)}`);
      }
    }
  }
}

async function takePicture(page, name) {
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

/** Opens what is folded. */
async function unfold(page) {
  for (const details of await page.$$("details:not([open]) > summary")) await details.click();
}

/** Takes pictures of all tabs of a page, or of the page if it has none. */
async function takeTabs(page, kind, look) {
  const tabs = await page.locator("[role=tab]").evaluateAll((found) => found.map((it) => it.id.replace("tab-", "")));
  for (const tab of tabs.length > 0 ? tabs : ["page"]) {
    if (tabs.length > 0) await page.click(`#tab-${tab}`);
    await page.waitForTimeout(300);
    await unfold(page);
    await takePicture(page, `${kind}-${tab}-${look}`);
  }
}

/** Takes the console: its sections, the form of a collection, a restore that is open, and an import that runs. */
async function takeConsole() {
  const service = await startNews(place);
  const put = { method: "PUT", headers: { "content-type": "application/json" }, body: JSON.stringify({ threshold: 0.8, window: "2d" }) };
  await fetch(`${service.url}/v1/collections/letters-of-the-harbour`, put);
  try {
    await forLooks(async (options, look) => {
      const page = await openConsole(browser, service.url, options);
      for (const [section, open] of Object.entries(openSections)) {
        await page.click(`#tab-${section}`);
        if (section !== "overview" && section !== "compare" && section !== "passages" && section !== "administration") await page.goto(`${service.url}/#/${section}/news`);
        await open(page);
        await takePicture(page, `console-${section}-${look}`);
      }
      await page.goto(`${service.url}/#/new`);
      await unfold(page);
      await takePicture(page, `console-new-${look}`);
      const held = await hold(page, "**/v1/collections/news/documents");
      await page.goto(`${service.url}/#/collections/news`);
      await page.setInputFiles("input[type=file]", [{ name: "rows.jsonl", mimeType: "text/plain", buffer: Buffer.from(`${sampleRows()}`) }, droppedFiles().at(-2)]);
      await held.asked;
      await takePicture(page, `console-import-${look}`);
      await page.click("#tab-check");
      await takePicture(page, `console-leaving-${look}`);
      held.release();
      await page.click(".import-notice a");
      await page.waitForSelector("section .names");
      await takePicture(page, `console-imported-${look}`);
      await page.context().close();
    });
  } finally {
    service.child.kill();
  }
}

/** Writes reports of all kinds, and returns their names. */
function makeReports() {
  const lines = (rows) => rows.map((it) => `${JSON.stringify(it)}\n`).join("");
  place.write("in.jsonl", sampleRows());
  place.run("dedup", "in.jsonl", "--removed", "removed.tsv", "--report", "dedup.html", "--threshold", "0.6", "--audit");
  place.write("forms.jsonl", readFileSync(join(root, "examples/forms.jsonl")));
  place.run("dedup", "forms.jsonl", "--report", "forms.html");
  place.run("pairs", "in.jsonl", "-o", "pairs.tsv", "--report", "pairs.html", "--threshold", "0.6");
  place.run("compare", "--literal", "the boat left at dawn with nine men on board", "the boat left at dawn with ten men on board", "--html", "compare.html");
  const question = "Explain in your own words why the first boat leaves the harbour at seven, who waits for it, and what the village would lose without it.";
  const own = (name) => Array.from({ length: 40 }, (_, at) => `${name}${at}`).join(" ");
  const names = ["anna.txt", "bernhard.txt", "clara.txt", "李小明的作文.txt"];
  for (const [at, name] of names.entries()) place.write(name, `${question} ${own(name.slice(0, 1))} ${at < 2 ? "Fishermen come home before sunrise so that their catch is on the market by half past eight in the morning." : ""}`);
  place.write("broken.pdf", "no PDF");
  place.run("passages", ...names, "broken.pdf", "--report", "shared.html");
  place.run("passages", names[0], "--against", names[1], "--report", "copied.html");
  const item = { id: "tide", question: "Which instrument in the kitchen of the keeper tells her the height of the tide?", choices: ["a brass gauge", "a folding sextant"], answer: 0 };
  place.write("quiz.jsonl", lines([item]));
  place.write("corpus.jsonl", lines([{ id: "notes", text: `Notes of a class. ${item.question} (A) a brass gauge.` }, { id: "plain", text: "Nothing stands here." }]));
  place.run("decontaminate", "corpus.jsonl", "--benchmarks", "quiz.jsonl", "-o", "clean.jsonl", "--report", "contamination.html");
  const pair = (at) => ({ a: `the boat ${at} left at dawn with nine men`, b: at % 2 ? `the boat ${at} left at dawn with ten men` : `the price of wheat ${at} will rise`, label: at % 2 });
  place.write("pairs.jsonl", lines([1, 2, 3, 4, 5, 6].map(pair)));
  place.run("eval", "pairs.jsonl", "--method", "auto,simhash", "--report", "eval.html");
  return ["dedup", "forms", "pairs", "compare", "shared", "copied", "contamination", "eval"];
}

/** Puts the page as it was built last into a report, as the variable `BUILT_CONSOLE` does for the console. */
function showBuiltReport(name) {
  const data = /(<script type="application\/json" id="data">)([^<]*)</;
  const page = readFileSync(join(root, "crates/lookalike-batch/pages/report.html"), "utf8");
  const [, , given] = data.exec(place.read(`${name}.html`));
  place.write(`${name}.html`, page.replace(data, (_, start) => `${start}${given}<`));
}

async function takeFile(url, kind, prepare = async () => {}) {
  await forLooks(async (options, look) => {
    const page = await openPage(browser, url, options);
    await prepare(page);
    await takeTabs(page, kind, look);
    await page.context().close();
  });
}

if (isWanted("console")) await takeConsole();
for (const name of wanted.length === 0 || wanted.some((it) => it.startsWith("report")) ? makeReports() : []) {
  if (process.env.BUILT_CONSOLE) showBuiltReport(name);
  if (isWanted(`report-${name}`) || wanted.includes("report")) await takeFile(place.url(`${name}.html`), `report-${name}`);
}
const webPage = join(root, "target/web/index.html");
if (isWanted("web") && existsSync(webPage)) {
  await takeFile(pathToFileURL(webPage).href, "web", (page) => page.waitForSelector(".bit-row"));
}
await browser.close();
place.remove();
