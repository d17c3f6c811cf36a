// What a teacher does with a class: who shares text with whom, without names, without what all were given, and as a table.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Place, checkPage, launch, openConsole, openPage, skip, startService } from "./support.mjs";

let browser, place, open;

const question = "Explain in your own words why the first boat leaves the harbour at seven, who waits for it on the other side, and what the village would lose without it.";
const answer = "Fishermen come home before sunrise, so that their catch has to be on the market by half past eight, and only the early boat can bring it there.";
const own = (name) => Array.from({ length: 40 }, (_, at) => `${name}${at}`).join(" ");
const essays = {
  "ann.txt": `${question} ${answer} ${own("a")}`,
  "ben.txt": `${question} ${answer.replace("early boat", "boat at seven")} ${own("b")}`,
  "cem.txt": `${question} ${own("c")}`,
  "dia.txt": `${question} ${own("d")} ${own("e")} ${own("f")}`,
};

before(async () => {
  if (skip) return;
  place = new Place();
  for (const [name, text] of Object.entries(essays)) place.write(name, text);
  place.write("question.txt", question);
  place.run("passages", ...Object.keys(essays), "--report", "whole.html");
  place.run("passages", ...Object.keys(essays), "--base", "question.txt", "--report", "left.html");
  place.write("scan.docx", "no archive");
  place.run("passages", ...Object.keys(essays), "scan.docx", "--report", "unread.html");
  open = await startService(place, "data");
  browser = await launch();
});
after(async () => {
  await browser?.close();
  open?.child.kill();
  place?.remove();
});

/** Sets the slider of the picture. */
const setShare = (page, percent) =>
  page.locator("input[type=range]").evaluate((slider, value) => {
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }, String(percent));

test("the picture shows who shares text, from a share on", { skip }, async () => {
  for (const locale of ["en-GB", "zh-CN"]) {
    const page = await openPage(browser, place.url("whole.html"), { locale });
    const [members, links] = [page.locator(".graph .member"), page.locator(".graph .link")];
    assert.deepEqual([await members.count(), await links.count()], [4, 6]);
    const before = await page.locator(".graph").innerHTML();
    await setShare(page, 50);
    assert.deepEqual([await members.count(), await links.count()], [2, 1]);
    assert.notEqual(await page.locator(".graph").innerHTML(), before);
    await setShare(page, 100);
    assert.equal(await members.count(), 0);
    await setShare(page, 0);
    // A click on a point shows the document.
    const name = await members.nth(3).locator("title").textContent();
    await members.nth(3).click();
    assert.match(await page.textContent(".split > .stack h2"), new RegExp(name.replace(".", "\\.")));
    assert.ok(await page.locator(".chart .bar").count() === 20);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
});

test("names are hidden at a click, also in the table, and come back", { skip }, async () => {
  for (const [locale, hide, show, anonymous] of [["en-GB", "Hide names", "Show names", /Document \d/], ["zh-CN", "隐藏名称", "显示名称", /文档 \d/]]) {
    const page = await openPage(browser, place.url("whole.html"), { locale });
    const save = async () => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.click("button:has-text('CSV')")]);
      return readFileSync(await download.path(), "utf8");
    };
    const names = () => page.evaluate(() => [...document.querySelectorAll(".side .entry .name, .graph title, .graph text, .split h2, .sides .title")].map((it) => it.textContent).join("\n"));
    assert.match(await names(), /ann\.txt/);
    const table = await save();
    assert.equal(table.split("\r\n").length, 1 + 6 + 1);
    assert.match(table, /^\ufeffdocument,other_document,passages,length,reworded,longest,unit,/);
    assert.match(table, /ben\.txt,ann\.txt,1,\d+,\d+,\d+,words,0\.\d+,0\.\d+/);
    await page.click(`button:has-text("${hide}")`);
    assert.doesNotMatch(await names(), /\.txt/);
    assert.match(await names(), anonymous);
    const hidden = await save();
    assert.doesNotMatch(hidden, /\.txt/);
    assert.match(hidden, anonymous);
    // A search by name finds nothing that is hidden.
    await page.fill(".search", "ann.txt");
    assert.equal(await page.locator(".side .entry").count(), 0);
    await page.fill(".search", "");
    await page.click(`button:has-text("${show}")`);
    assert.match(await names(), /ann\.txt/);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
});

const csv = (text) => ({ name: "class.csv", mimeType: "text/csv", buffer: Buffer.from(text) });

test("a table gives names and groups, which narrow the picture and the list", { skip }, async () => {
  const page = await openPage(browser, place.url("whole.html"));
  const [entries, members, links] = [".side .entry", ".graph:not(.group-mark) .member", ".graph .link"].map((it) => page.locator(it));
  await page.setInputFiles("input[type=file]", csv("first,second\n1,2"));
  await page.waitForSelector("[role=alert]:has-text('does not name the columns')");
  await page.setInputFiles("input[type=file]", csv("filename,full_name,label,created_at\nann.txt,Ann Lee,2025,Monday\nben.txt,Ben Ito,2026,\ncem.txt,,2026,\nnobody.txt,No Body,2026,\n"));
  await page.waitForSelector("text=The table names 3 of 4 documents.");
  assert.match(await page.innerText("section[aria-label=Groups]"), /1 row is about no document, or about several: nobody\.txt/);
  assert.match((await entries.allInnerTexts()).join("\n"), /Ann Lee[^]*2025 · Monday · ann\.txt/);
  // Marks of groups differ in shape, too.
  const outlines = await page.locator(".group-mark path").evaluateAll((all) => all.map((it) => it.getAttribute("d")));
  assert.equal(new Set(outlines).size, 2);
  await page.selectOption("section[aria-label=Groups] select", "between");
  assert.deepEqual([await entries.count(), await links.count()], [3, 2]);
  await page.selectOption("section[aria-label=Groups] select", "within");
  assert.deepEqual([await entries.count(), await links.count()], [2, 1]);
  await page.selectOption("section[aria-label=Groups] select", "all");
  await page.uncheck("section[aria-label=Groups] input >> nth=1");
  assert.deepEqual([await entries.count(), await members.count()], [2, 2]);
  await page.check("section[aria-label=Groups] input >> nth=1");
  await page.fill(".search", "ann.txt 2025");
  assert.equal(await entries.count(), 4);
  await page.fill(".search", "id:2025");
  assert.equal(await entries.count(), 1);
  await page.fill(".search", "");
  await checkPage(page, "groups of a class");
  await page.click("text=Hide names");
  const shown = await page.evaluate(() => document.body.innerText.replace(/\n.*(?=\n)/g, (line) => (line.includes("seven") ? "" : line)));
  assert.doesNotMatch(shown, /Ann Lee|Ben Ito|\.txt|2025|2026 ·|Monday/);
  await page.click("text=Remove names and groups");
  assert.equal(await page.locator("section[aria-label=Groups]").count(), 0);
  assert.deepEqual(page.faults, []);
});

test("a click on a bar moves the picture, and the longest passage leads the list", { skip }, async () => {
  const page = await openPage(browser, place.url("whole.html"));
  const bars = page.locator(".chart .bar");
  const heights = await bars.evaluateAll((all) => all.map((it) => Number(it.getAttribute("height"))));
  const last = heights.findLastIndex((it) => it > 0);
  await bars.nth(last).click();
  assert.equal(await page.inputValue("input[type=range]"), String(5 * last));
  assert.ok((await page.locator(".graph .link").count()) < 6);
  await page.selectOption(".side select", "longestPassage");
  assert.match(await page.innerText(".side .entry >> nth=0"), /ann\.txt|ben\.txt/);
  assert.deepEqual(page.faults, []);
});

test("passages of a pair are shown in both texts, at a click and by keys", { skip }, async () => {
  const filler = (name) => Array.from({ length: 600 }, (_, at) => `${name}${at}`).join(" ");
  place.write("long.txt", `${question} ${filler("x")} ${answer}`);
  place.write("other.txt", `${answer} ${filler("y")} ${question}`);
  place.run("passages", "long.txt", "other.txt", "--report", "two.html");
  const page = await openPage(browser, place.url("two.html"));
  const buttons = page.locator(".passage-list button");
  assert.equal(await buttons.count(), 2);
  const marked = () => page.locator("mark.target").evaluateAll((all) => all.map((it) => it.textContent.replace(/\d+ /, "").slice(0, 12)));
  const inSight = () => page.locator("mark.target").evaluateAll((all) => all.every((it) => {
    const [box, text] = [it.getBoundingClientRect(), it.closest(".text").getBoundingClientRect()];
    return box.bottom > text.top && box.top < text.bottom;
  }));
  const seen = [];
  await buttons.nth(1).click();
  seen.push(await marked());
  assert.ok(await inSight());
  await page.keyboard.press("K");
  seen.push(await marked());
  assert.ok(await inSight());
  await page.keyboard.press("K");
  assert.deepEqual(await marked(), seen[1]);
  await page.keyboard.press("J");
  assert.deepEqual(await marked(), seen[0]);
  for (const texts of seen) assert.equal(new Set(texts).size, 1, texts.join("|"));
  assert.notDeepEqual(seen[0], seen[1]);
  await checkPage(page, "passages of a pair");
});

test("text that all were given is told, and its edits are marked in what is left", { skip }, async () => {
  for (const [locale, common, base] of [["en-GB", /stands in 4 of 4 documents: --base FILE/, /words of 4 documents stand in the text that all were given/], ["zh-CN", /4 篇文档中的 4 篇里：--base FILE/, /4 篇文档中有 \d+ 个词或字出自 1 篇公共文本/]]) {
    const whole = await openPage(browser, place.url("whole.html"), { locale });
    assert.match(await whole.textContent("details.note summary"), common);
    await whole.click("details.note summary");
    assert.match(await whole.textContent("details.note .words"), /Explain in your own words/);
    await whole.context().close();
    const left = await openPage(browser, place.url("left.html"), { locale });
    assert.match(await left.textContent("p.note"), base);
    assert.equal(await left.locator("details.note").count(), 0);
    assert.equal(await left.locator(".side .entry").count(), 2);
    const edits = async (side) => (await left.locator(`.sides ${side} mark u.own`).allTextContents()).join(" ").trim();
    const both = [await edits(".left.text"), await edits(".right.text")].sort();
    assert.equal(both.length, 2);
    assert.match(both.join("|"), /at seven/);
    assert.match(both.join("|"), /early/);
    assert.deepEqual(left.faults, []);
    await left.context().close();
  }
});

test("the console leaves out a text at a click, from a file, and by a limit", { skip }, async () => {
  const files = Object.entries(essays).map(([name, text]) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) }));
  const page = await openConsole(browser, open.url, { acceptDownloads: true });
  const start = async () => {
    await page.goto(`${open.url}/#/passages`);
    await page.reload();
    await page.waitForSelector(".drop");
    await page.setInputFiles("input[type=file] >> nth=0", files);
    await page.waitForSelector("text=4 documents");
  };
  const find = async () => {
    await page.click(".button.strong:enabled");
    await page.waitForSelector(".sides");
  };
  const entries = () => page.locator(".side .entry").count();
  await start();
  await find();
  assert.equal(await entries(), 4);
  assert.match(await page.textContent("details.note summary"), /If all were given it/);
  await page.click("details.note summary");
  await page.click("details.note button");
  await page.waitForSelector("p.note:has-text('all were given')");
  await page.waitForSelector(".sides");
  assert.equal(await entries(), 2);
  await start();
  await page.setInputFiles("input[type=file] >> nth=1", [{ name: "question.txt", mimeType: "text/plain", buffer: Buffer.from(question) }]);
  await page.waitForSelector("text=1 document");
  await find();
  assert.equal(await entries(), 2);
  await start();
  await page.fill("input[max='1000000']", "3");
  await page.locator("input[max='1000000']").blur();
  await find();
  assert.equal(await entries(), 2);
  assert.deepEqual(page.faults, []);
});

/** Clicks a button, and returns what it saves. */
async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(`button:has-text("${button}")`)]);
  return readFileSync(await download.path(), "utf8");
}

const dataOf = (report) => /id="data">([^<]*)</.exec(report)[1];

test("a copy of a report has no names, opens, and saves tables without names", { skip }, async () => {
  for (const [locale, copy, pair, anonymous, told] of [["en-GB", "Save a copy without names", "Save this pair without names", /Document \d/, /numbers in the place of names/], ["zh-CN", "另存不含名称的副本", "保存这一对（不含名称）", /文档 \d/, /此副本以编号代替名称/]]) {
    const page = await openPage(browser, place.url("unread.html"), { locale });
    assert.match(await page.innerText("body"), /scan\.docx/);
    await page.fill(".field input[type=text]", "fishermen, HALF past");
    const report = await saved(page, copy);
    assert.doesNotMatch(dataOf(report), /\.txt|scan\.docx|fishermen|half past|unread\.html/i);
    assert.match(dataOf(report), /market/);
    place.write("copy.html", report);
    const opened = await openPage(browser, place.url("copy.html"), { locale });
    await opened.waitForSelector(".sides mark");
    const text = await opened.innerText("body");
    assert.doesNotMatch(text, /\.txt|scan\.docx|Fishermen/);
    assert.match(text, anonymous);
    assert.match(text, told);
    assert.match(text, /█████████/);
    const table = await saved(opened, "CSV");
    assert.doesNotMatch(table, /\.txt/);
    assert.match(table, anonymous);
    assert.deepEqual(opened.faults, []);
    const one = await saved(page, pair);
    assert.doesNotMatch(dataOf(one), /\.txt|Fishermen/);
    assert.equal(JSON.parse(dataOf(one)).pairs.document.length, 1);
    place.write("one.html", one);
    const alone = await openPage(browser, place.url("one.html"), { locale });
    await alone.waitForSelector(".sides mark");
    assert.equal(await alone.locator(".side .entry").count(), 2);
    assert.deepEqual([...alone.faults, ...page.faults], []);
    for (const it of [page, opened, alone]) await it.context().close();
  }
});

test("the console saves what it shows: names or none, and all files that are not compared", { skip }, async () => {
  const files = Object.entries(essays).map(([name, text]) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) }));
  const unread = ["jakob.pages", "Thumbs.db"].map((name) => ({ name, mimeType: "application/octet-stream", buffer: Buffer.from("x") }));
  const damaged = { name: "damaged.docx", mimeType: "application/octet-stream", buffer: Buffer.from("PK") };
  const page = await openConsole(browser, open.url, { acceptDownloads: true }, "#/passages");
  await page.waitForSelector(".drop");
  await page.setInputFiles("input[type=file] >> nth=0", [...files, ...unread, damaged]);
  await page.waitForSelector("text=4 documents");
  await page.click(".button.strong:enabled");
  await page.waitForSelector(".sides");
  assert.match(await page.innerText("section[role=note]"), /3 of 7 files are not compared[^]*Thumbs\.db: files of this kind are not read[^]*damaged\.docx: the file is incomplete or damaged; ask for it again/);
  const whole = await saved(page, "Save the report");
  const { summary } = JSON.parse(dataOf(whole));
  assert.deepEqual([summary.files, summary.unreadable.map((it) => it.file)], [7, ["Thumbs.db", "damaged.docx", "jakob.pages"]]);
  assert.match(dataOf(whole), /ann\.txt/);
  await page.click("button:has-text('Hide names')");
  const hidden = dataOf(await saved(page, "Save the report without names"));
  assert.doesNotMatch(hidden, /\.txt|\.pages|Thumbs|damaged/);
  assert.match(hidden, /Document 1/);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("printing shows whole texts, and the picture tells what it leaves out", { skip }, async () => {
  const page = await openPage(browser, place.url("whole.html"), { viewport: { width: 900, height: 260 } });
  const isCut = () => page.locator(".sides .text").evaluateAll((texts) => texts.map((it) => it.scrollHeight > it.clientHeight));
  assert.ok((await isCut()).includes(true));
  await page.emulateMedia({ media: "print" });
  assert.deepEqual(await isCut(), [false, false]);
  await page.emulateMedia({ media: "screen" });
  assert.equal(await page.locator(".grid .note").count(), 0);
  await setShare(page, 50);
  assert.match(await page.innerText(".grid .note"), /^5 of 6 pairs are not shown/);
  await page.context().close();
});
