// The report of a run, opened from disk.
import assert from "node:assert/strict";
import { statSync, writeFileSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Place, checkLooks, checkPage, checkWidth, hostile, launch, openPage, sampleRows, skip } from "./support.mjs";

const sections = ["overview", "review", "clusters", "run"];
let browser, place;

before(async () => {
  if (skip) return;
  place = new Place();
  place.write("in.jsonl", sampleRows());
  place.run("dedup", "in.jsonl", "--removed", "removed.tsv", "--report", "report.html", "--threshold", "0.6", "--audit");
  browser = await launch();
});
after(async () => {
  await browser?.close();
  place?.remove();
});

const open = (options) => openPage(browser, place.url("report.html"), options);
const show = (page, section) => page.click(`#tab-${section}`);

test("every section is accessible in light and dark, in both languages and on a phone", { skip }, async () => {
  for (const locale of ["en-GB", "zh-CN"]) {
    const page = await open({ locale });
    assert.equal(await page.getAttribute("html", "lang"), locale === "zh-CN" ? "zh-Hans" : "en");
    for (const section of sections) {
      await show(page, section);
      await checkLooks(page, section, locale);
    }
    await page.context().close();
  }
});

test("a report that is opened on a phone fits it", { skip }, async () => {
  const page = await open({ viewport: { width: 390, height: 844 } });
  for (const section of sections) {
    await show(page, section);
    await checkWidth(page, section);
  }
});

test("an address opens a section, and Back leads to the section before", { skip }, async () => {
  const page = await openPage(browser, `${place.url("report.html")}#/review/all`);
  const selected = (section) => page.waitForSelector(`#tab-${section}[aria-selected=true]`);
  await selected("review");
  assert.equal(await page.inputValue("#section select >> nth=0"), "all");
  await show(page, "run");
  assert.equal(new URL(page.url()).hash, "#/run");
  await page.goBack();
  await selected("review");
  await page.goForward();
  await page.reload();
  await selected("run");
  assert.deepEqual(page.faults, []);
});

test("a fault on a page is found", { skip }, async () => {
  const page = await open();
  await page.evaluate(() => document.querySelector("main").append(new Image()));
  await assert.rejects(checkPage(page, "a picture without words"), /image-alt/);
});

test("no text becomes markup, and characters that cannot be seen are shown", { skip }, async () => {
  const page = await open();
  await show(page, "review");
  await page.selectOption("select >> nth=1", "all");
  await page.fill(".search", "hostile");
  for (const entry of await page.$$(".entry")) await entry.click();
  await page.fill(".search", "id:hostile text:direction");
  await page.waitForSelector(".pair");
  const text = await page.textContent(".pair");
  for (const shown of ["U+202E", "U+0000", "U+200B"]) assert.ok(text.includes(shown), shown);
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(page.faults, []);
});

test("differences are marked, and what normalisation made equal is told apart", { skip }, async () => {
  const page = await open();
  await show(page, "review");
  await page.selectOption("select >> nth=1", "all");
  await page.fill(".search", "id:case");
  assert.match(await page.textContent(".sides .alike"), /^THE$|^the$/);
  assert.equal(await page.locator(".sides del, .sides ins").count(), 0);
  await page.fill(".search", "id:zh-1");
  assert.equal(await page.textContent(".sides del"), "黎明");
  assert.equal(await page.textContent(".sides ins"), "清晨");
  await page.fill(".search", "similarity:oops");
  assert.match(await page.textContent("[role=alert]"), /similarity:oops/);
});

test("marks made by key are saved, and the next run obeys", { skip }, async () => {
  const page = await open();
  await show(page, "review");
  const names = async () => (await page.textContent('.entry[aria-selected="true"] .name')).trim();
  await page.keyboard.press("n");
  await page.keyboard.press("k");
  const first = await names();
  await page.keyboard.press("j");
  const second = await names();
  await page.keyboard.press("y");
  await page.keyboard.press("u");
  await page.keyboard.press("k");
  await page.keyboard.press("u");
  await page.keyboard.press("k");
  await page.keyboard.press("n");
  assert.notEqual(first, second);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save decisions")]);
  assert.equal(download.suggestedFilename(), "decisions.jsonl");
  const decisions = readFileSync(await download.path(), "utf8");
  place.write("decisions.jsonl", decisions);
  const told = decisions.trim().split("\n").map((line) => JSON.parse(line));
  const overruled = told.filter((it) => it.label === "different").map((it) => it.b_id);
  assert.ok(overruled.includes(first));
  const removed = () => new Set(place.read("removed.tsv").trim().split("\n").slice(1).map((line) => line.split("\t")[0]));
  assert.ok(overruled.every((id) => removed().has(id)));
  const summary = JSON.parse(place.run("dedup", "in.jsonl", "--removed", "removed.tsv", "--threshold", "0.6", "--decisions", "decisions.jsonl", "--json"));
  assert.equal(summary.decisions.different, overruled.length);
  assert.equal(summary.decisions.without_pair, 0);
  assert.ok(overruled.every((id) => !removed().has(id)), `${overruled} ${[...removed()]}`);
});

test("forms are shown, and a mark is about all documents of one", { skip }, async () => {
  const removed = () => place.read("forms-removed.tsv").trim().split("\n").slice(1).map((line) => line.split("\t")[0]);
  const dedup = (...more) => place.run("dedup", "forms.jsonl", "--removed", "forms-removed.tsv", "--report", "forms.html", ...more);
  const rows = readFileSync(new URL("../../../examples/forms.jsonl", import.meta.url), "utf8");
  place.write("forms.jsonl", rows);
  dedup();
  const before = removed();
  for (const locale of ["en-GB", "zh-CN"]) {
    const page = await openPage(browser, place.url("forms.html"), { locale });
    await show(page, "forms");
    await checkLooks(page, "forms", locale);
    await page.context().close();
  }
  const page = await openPage(browser, place.url("forms.html"));
  await show(page, "forms");
  await page.fill(".search", "text:euros");
  assert.equal(await page.locator(".entry").count(), 1);
  assert.match(await page.textContent(".frame"), /euros\. Made by hand.*\[1\]/s);
  const table = page.locator(".wide-table table tbody tr");
  assert.equal(await table.count(), 13);
  assert.match(await table.nth(0).textContent(), /shop-1/);
  await page.keyboard.press("Escape");
  await page.keyboard.press("y");
  await page.waitForSelector("text=1 mark");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save decisions")]);
  place.write("forms-decisions.jsonl", readFileSync(await download.path(), "utf8"));
  dedup("--decisions", "forms-decisions.jsonl");
  const offers = removed().filter((id) => id.startsWith("shop"));
  assert.ok(before.filter((id) => id.startsWith("shop")).length === 1 && offers.length > 10, `${offers}`);
  assert.deepEqual(removed().filter((id) => !id.startsWith("shop")), before.filter((id) => !id.startsWith("shop")));
});

test("two keys at once mark two pairs", { skip }, async () => {
  const page = await open();
  await show(page, "review");
  await page.evaluate(() => {
    for (const key of ["y", "y"]) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  });
  await page.waitForSelector("text=2 marks");
});

test("marks stay when the page is opened again", { skip }, async () => {
  const page = await open();
  await show(page, "review");
  await page.keyboard.press("y");
  await page.waitForSelector("text=1 mark");
  await page.reload();
  await page.waitForSelector("text=1 mark");
  page.on("dialog", (dialog) => dialog.accept());
  await page.click("text=Remove all marks");
  await page.waitForSelector("text=1 mark", { state: "detached" });
});

test("the language and the colours can be chosen", { skip }, async () => {
  const page = await open({ colorScheme: "light" });
  await page.click("text=中文");
  assert.match(await page.textContent("#tab-overview"), /概览/);
  const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await colour();
  await page.selectOption("select >> nth=0", "dark");
  await page.waitForFunction((before) => getComputedStyle(document.body).backgroundColor !== before, light);
});

test("pairs are reported by the same page", { skip }, async () => {
  place.run("pairs", "in.jsonl", "-o", "pairs.tsv", "--report", "pairs.html", "--threshold", "0.6");
  const page = await openPage(browser, place.url("pairs.html"));
  assert.equal(await page.locator("#tab-clusters").count(), 0);
  const pairs = place.read("pairs.tsv").trim().split("\n").length - 1;
  assert.equal(await page.textContent(".stat >> nth=1 >> b"), String(pairs));
  for (const section of ["overview", "review", "run"]) {
    await show(page, section);
    await checkPage(page, `pairs, ${section}`);
  }
  await show(page, "review");
  assert.match(await page.textContent(".sides .left.title"), /First/);
});

test("a comparison shows differences, passages and every step", { skip }, async () => {
  const [a, b] = ["the boat left at dawn with nine men on board", "the boat left at dawn with ten men on board </script>"];
  place.run("compare", "--literal", a, b, "--html", "compare.html");
  for (const locale of ["en-GB", "zh-CN"]) {
    const page = await openPage(browser, place.url("compare.html"), { locale });
    assert.equal(await page.textContent(".sides del"), "nine");
    for (const details of await page.$$("details > summary")) await details.click();
    await checkLooks(page, "compare", locale);
    await page.context().close();
  }
  const shared = "a passage of more than twelve words that both texts have in common, word for word, as it is ";
  place.write("a.txt", `${"alone here ".repeat(40)}${shared}`);
  place.write("b.txt", `${shared}${"something else ".repeat(40)}`);
  place.run("compare", "a.txt", "b.txt", "--html", "passages.html");
  const page = await openPage(browser, place.url("passages.html"));
  await page.click("#a1 a");
  assert.ok(page.url().endsWith("#b1"));
  assert.match(await page.textContent("#b1"), /a passage of more than twelve words/);
  await checkPage(page, "passages of a comparison");
});

test("passages are shown side by side, with linked numbers", { skip }, async () => {
  const shared = "a passage of more than twelve words that both essays have in common, word for word, as it is ";
  place.write("essay.txt", `${"my own thoughts about <boats> ".repeat(30)}${shared}${"and more of my own ".repeat(20)}`);
  place.write("source.txt", `${shared}${"the source goes on with something else ".repeat(20)}`);
  place.run("passages", "essay.txt", "--against", "source.txt", "--report", "passages.html");
  for (const locale of ["en-GB", "zh-CN"]) {
    const page = await openPage(browser, place.url("passages.html"), { locale });
    await checkLooks(page, "passages", locale);
    assert.match(await page.textContent("#a1"), /a passage of more than twelve words/);
    await page.click("#a1 a");
    assert.ok(page.url().endsWith("#b1"));
  }
});

test("documents that share text without a known direction are shown alike, below what was left out", { skip }, async () => {
  const shared = "a passage of more than twelve words that both essays have in common, word for word, as it is ";
  for (const [name, text] of [["a.txt", `${"my own thoughts about boats ".repeat(30)}${shared}`], ["b.txt", `${shared}${"something else goes on ".repeat(90)}`], ["c.pdf", "no PDF"]]) {
    place.write(name, text);
  }
  place.run("passages", "a.txt", "b.txt", "c.pdf", "--report", "shared.html");
  const words = { "en-GB": [/1 file is not compared, because it could not be read.*c\.pdf/s, /Other document/, /Source|copied|elsewhere/i], "zh-CN": [/1 个文件无法读取，未参与比较.*c\.pdf/s, /另一篇/, /来源|抄/] };
  for (const [locale, [leftOut, other, accusing]] of Object.entries(words)) {
    const page = await openPage(browser, place.url("shared.html"), { locale });
    await checkLooks(page, "shared passages", locale);
    assert.match(await page.textContent("[role=note]"), leftOut);
    assert.equal(await page.locator(".side .entry").count(), 2);
    for (const [name, partner] of [["a.txt", "b.txt"], ["b.txt", "a.txt"]]) {
      await page.click(`.side .entry:has-text("${name}")`);
      assert.match(await page.textContent(".sides .left.title"), new RegExp(name.replace(".", "\\.")));
      assert.match(await page.textContent(".sides .right.title"), new RegExp(`${other.source}.*${partner.replace(".", "\\.")}`, "s"));
      assert.match(await page.textContent("#a1"), /a passage of more than twelve words/);
      assert.match(await page.textContent("#b1"), /a passage of more than twelve words/);
    }
    for (const part of [".stats", ".split > .stack"]) {
      assert.doesNotMatch(await page.innerText(part), accusing);
    }
    await page.context().close();
  }
});

test("findings of benchmarks stand beside their items, and ids can be copied", { skip }, async () => {
  const question = "A lighthouse keeper on a rocky island lights the lamp before sunset. Which instrument in her kitchen tells her the height of the tide?";
  const tide = { id: `tide ${hostile[1]}`, question, choices: ["a brass gauge", "a folding sextant", "an hourglass", "a mercury barometer"], answer: 0 };
  const markup = { id: "markup", question: `${hostile[0]} and where does the zanthomere bloom?`, choices: ["on the quay", "in the garden", "under the bridge", "behind the mill"], answer: 1 };
  place.write("quiz.jsonl", [tide, markup].map((it) => `${JSON.stringify(it)}\n`).join(""));
  const page1 = `Notes of a class. ${question.replace("kitchen", "pantry").toUpperCase()} (A) a brass gauge. ${hostile[2]}`;
  const rows = [{ id: "<b>notes</b>", text: page1 }, { id: "quoted", text: `${markup.question} ${"It blooms. ".repeat(90)}` }, { id: "plain", text: "Nothing stands here." }];
  place.write("corpus.jsonl", rows.map((it) => `${JSON.stringify(it)}\n`).join(""));
  place.run("decontaminate", "corpus.jsonl", "--benchmarks", "quiz.jsonl", "-o", "clean.jsonl", "--report", "contamination.html");
  for (const locale of ["en-GB", "zh-CN"]) {
    const page = await openPage(browser, place.url("contamination.html"), { locale });
    for (const section of ["overview", "findings", "scores"]) {
      await show(page, section);
      await checkLooks(page, `contamination, ${section}`, locale);
    }
    await page.context().close();
  }
  const page = await openPage(browser, place.url("contamination.html"));
  assert.match(await page.textContent(".wide-table tbody tr"), /quiz.*2.*2/s);
  await show(page, "findings");
  await page.fill(".search", "id:notes");
  assert.equal(await page.locator(".entry").count(), 1);
  const marked = (side) => page.locator(`.sides .${side}.text mark`).allTextContents();
  assert.ok((await marked("left")).includes("a brass gauge"));
  assert.deepEqual((await marked("right")).map((it) => it.toLowerCase()), [...question.split(" kitchen ").map((it) => it.replace("?", "").toLowerCase()), "a brass gauge"]);
  await show(page, "scores");
  assert.match(await page.textContent("pre"), /of 2 items, 2 are in the corpus.*\ntide .*\nmarkup$/s);
  await page.click("text=Copy all");
  await page.waitForSelector("text=copied");
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(page.faults, []);
});

test("an evaluation shows its curves", { skip }, async () => {
  const pair = (at, label) => JSON.stringify({ a: `the boat ${at} left at dawn with nine men`, b: label ? `the boat ${at} left at dawn with ten men` : `the price of wheat ${at} will rise`, label });
  place.write("pairs.jsonl", [1, 2, 3, 4, 5, 6].map((at) => pair(at, at % 2)).join("\n"));
  place.run("eval", "pairs.jsonl", "--method", "auto,simhash", "--report", "eval.html");
  for (const locale of ["en-GB", "zh-CN"]) {
    const page = await openPage(browser, place.url("eval.html"), { locale });
    assert.equal(await page.locator("path.curve").count(), 6);
    for (const details of await page.$$("details > summary")) await details.click();
    await checkLooks(page, "evaluation", locale);
  }
});

test("printing leaves out what only a screen needs", { skip }, async () => {
  const page = await open({ colorScheme: "dark" });
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.isVisible(".tabs"), false);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
});

test("a file that is damaged says so", { skip }, async () => {
  place.write("damaged.html", place.read("report.html").replace('"format":"lookalike-report"', '"format":"other"'));
  const page = await openPage(browser, place.url("damaged.html"));
  assert.match(await page.textContent("main"), /cannot be read/);
});

test("a report of a million removals in 200,000 clusters loads within 2 seconds and scrolls", { skip }, async () => {
  place.write("large.html", place.read("report.html").replace(/(id="data">)(.*?)(<\/script>)/s, (_, head, json, tail) => head + JSON.stringify(enlarge(JSON.parse(json))) + tail));
  const size = statSync(place.file("large.html")).size;
  assert.ok(size > 12e6 && size < 20e6, `${size} bytes`);
  const times = [];
  for (let round = 0; round < 3; round += 1) {
    const start = performance.now();
    const page = await openPage(browser, place.url("large.html"));
    await page.waitForSelector(".stat");
    times.push(performance.now() - start);
    if (round < 2) await page.context().close();
    else await scroll(page);
  }
  console.log(`opened ${(size / 1e6).toFixed(1)} MB in ${times.map((it) => Math.round(it)).join(", ")} ms`);
  assert.ok(Math.min(...times) < 2000, `${times} ms`);

  async function scroll(page) {
    await show(page, "clusters");
    await page.focus(".list");
    await page.keyboard.press("End");
    await page.waitForSelector('.entry[aria-posinset="200000"][aria-selected="true"]');
    assert.ok((await page.locator(".entry").count()) < 60);
    await page.fill(".search", "cluster:>100");
    await page.waitForSelector('.entry[aria-posinset="1"]');
    await show(page, "review");
    await page.selectOption("select >> nth=1", "all");
    await page.focus(".list");
    await page.keyboard.press("End");
    await page.waitForSelector('.entry[aria-posinset="110000"][aria-selected="true"]');
    assert.deepEqual(page.faults, []);
  }
});

/** Returns the data as a run over a large corpus would have it, up to the budgets of docs/report.md. */
function enlarge(data) {
  const clusters = 200_000, removals = 110_000;
  const list = (count, value) => Array.from({ length: count }, (_, at) => value(at));
  data.summary.removed = data.removals.total = 1_000_000;
  data.summary.clusters = data.clusters.total = clusters;
  Object.assign(data.clusters, {
    id: list(clusters, (at) => `kept-${at}`), source: list(clusters, () => 0), row: list(clusters, (at) => at * 7 + 1),
    size: list(clusters, (at) => 2 + Math.floor(100_000 / (at + 1))), least: list(clusters, (at) => 0.75 + (at % 250) / 1000), text: list(clusters, () => -1),
  });
  Object.assign(data.removals, {
    id: list(removals, (at) => `removed-${at}`), source: list(removals, () => 0), row: list(removals, (at) => at * 9 + 2),
    cluster: list(removals, (at) => (at * 7919) % clusters), similarity: list(removals, (at) => 0.75 + (at % 2500) / 10000),
    route: list(removals, () => 2), text: list(removals, () => -1),
  });
  data.nearest = [];
  data.equal_after_normalization.rows = [];
  data.differences = { removal: [], runs: [] };
  data.texts = { text: list(1200, (at) => "filling ".repeat(400) + at), characters: list(1200, () => 3200), content: list(1200, () => ""), key: list(1200, () => "") };
  return data;
}
