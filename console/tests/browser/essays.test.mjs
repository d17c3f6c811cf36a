// What a teacher does: a folder of 60 essays is dropped on the page, which lists who shares what. `LOOKALIKE_RUNNER=wine` and
// `LOOKALIKE=…/lookalike.exe` run it with the program for Windows.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Place, dropPaths, launch, makeDocx, openConsole, skip, startService } from "./support.mjs";

let browser, place, open;

const folder = "Essays 作文";

/** Pairs that share a passage, by the numbers of the essays. */
const sharing = [[3, 17], [8, 44], [12, 13], [25, 59], [31, 50]];

/** Names of the essays: texts of several systems, documents of a word processor, and a folder within the folder. */
function nameOf(number) {
  const name = `essay ${String(number).padStart(2, "0")} élève 学生`;
  if (number >= 50) return `class b/${name}.txt`;
  return number % 4 === 0 ? `${name}.docx` : `${name}.txt`;
}

/** Returns a source of numbers that is the same in each run. */
function numbersFrom(seed) {
  let state = seed;
  return (below) => {
    state = (state * 48271) % 2147483647;
    return state % below;
  };
}

const syllables = ["ba", "ko", "ri", "tel", "mun", "sa", "vor", "lin", "que", "dra"];

function makeText(number, words) {
  const next = numbersFrom(number * 7919 + 1);
  const word = () => Array.from({ length: 2 + next(2) }, () => syllables[next(syllables.length)]).join("");
  const sentence = () => `${Array.from({ length: 12 }, word).join(" ")}.`;
  return Array.from({ length: words / 12 }, sentence).join(" ");
}

/** Returns the bytes of an essay: every third has the line ends of Windows, every fifth is in UTF-16. */
function bytesOf(number, text) {
  const name = nameOf(number);
  if (name.endsWith(".docx")) return makeDocx(text);
  const lines = text.replaceAll(". ", number % 3 === 0 ? ".\r\n" : ".\n");
  return number % 5 === 0 ? Buffer.from(`\ufeff${lines}`, "utf16le") : Buffer.from(lines);
}

function writeEssays() {
  mkdirSync(`${place.file(folder)}/class b`, { recursive: true });
  for (let number = 0; number < 60; number += 1) {
    const pair = sharing.findIndex((it) => it.includes(number));
    const passage = pair < 0 ? "" : makeText(1000 + pair, 36);
    const text = `${makeText(number, 240)} ${passage} ${makeText(number + 100, 240)}`;
    place.write(`${folder}/${nameOf(number)}`, bytesOf(number, text));
  }
  // What systems leave in folders.
  place.write(`${folder}/desktop.ini`, "[.ShellClassInfo]\r\n");
  place.write(`${folder}/~$essay.docx`, "owner");
}

before(async () => {
  if (skip) return;
  place = new Place();
  writeEssays();
  open = await startService(place, "data");
  browser = await launch();
});
after(async () => {
  await browser?.close();
  open?.child.kill();
  place?.remove();
});

test("a dropped folder of 60 essays shows who shares what", { skip }, async () => {
  const page = await openConsole(browser, open.url, { acceptDownloads: true });
  // The address that a double click opens.
  await page.goto(`${open.url}/#/passages`);
  await page.reload();
  await page.waitForSelector(".drop");
  const start = Date.now();
  await dropPaths(page, ".drop", [place.file(folder)]);
  await page.waitForSelector("text=60 documents");
  assert.deepEqual(await page.locator("[role=alert]").allTextContents(), []);
  await page.click(".button.strong:enabled");
  await page.waitForSelector(".sides");
  console.log(`seconds from the drop to the pairs: ${(Date.now() - start) / 1000}`);
  const sharers = page.locator(".side .entry");
  assert.equal(await sharers.count(), sharing.length * 2, (await sharers.allTextContents()).join("\n"));
  for (const pair of sharing) {
    const [name, other] = pair.map((number) => `${folder}/${nameOf(number)}`);
    await page.click(`.side .entry:has-text("${name}")`);
    await page.waitForSelector(`.sides .title:has-text("${other}")`);
  }
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save the report")]);
  assert.match(readFileSync(await download.path(), "utf8"), /"kind":"passages"/);
  assert.deepEqual(page.faults, []);
});
