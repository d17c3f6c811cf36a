// The console of a running service: every section, what it shows, keys and other origins.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Place, checkLooks, checkPage, checkWidth, hold, hostile, launch, openConsole, openSections, skip, startNews, startService } from "./support.mjs";

const sections = Object.keys(openSections);
let browser, place, open, locked;

before(async () => {
  if (skip) return;
  place = new Place();
  open = await startNews(place);
  locked = await startService(place, "locked", { LOOKALIKE_ADMIN_KEY: "a key of some length" });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  open?.child.kill();
  locked?.child.kill();
  place?.remove();
});

test("every section is accessible in light and dark, in both languages and on a phone", { skip }, async () => {
  for (const locale of ["en-GB", "zh-CN"]) {
    const page = await openConsole(browser, open.url, { locale });
    await page.waitForSelector(".stat");
    for (const section of sections) {
      await page.click(`#tab-${section}`);
      await openSections[section](page);
      await checkLooks(page, section, locale);
    }
    await page.context().close();
  }
});

test("a phone shows every section", { skip }, async () => {
  const page = await openConsole(browser, open.url, { viewport: { width: 390, height: 844 } });
  for (const section of sections) {
    await page.click(`#tab-${section}`);
    await openSections[section](page);
    await checkWidth(page, section);
  }
});

test("the overview counts what is inserted meanwhile", { skip }, async () => {
  const page = await openConsole(browser, open.url);
  const kept = async () => Number((await page.textContent(".stat >> nth=0 >> b")).replace(/\D/g, ""));
  await page.waitForSelector(".stat");
  const first = await kept();
  const body = JSON.stringify({ id: "new", text: "something entirely new that resembles nothing else in this small collection of texts" });
  await fetch(`${open.url}/v1/collections/news/documents`, { method: "POST", headers: { "content-type": "application/json" }, body });
  await page.waitForFunction((count) => Number(document.querySelector(".stat b").textContent.replace(/\D/g, "")) === count, first + 1);
});

test("the overview shows the duplicates among the inserts, and how much of its window a collection fills", { skip }, async () => {
  const json = (method, body) => ({ method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  assert.equal((await fetch(`${open.url}/v1/collections/windowed`, json("PUT", { window: "2d" }))).status, 201);
  const insert = (id, time) => fetch(`${open.url}/v1/collections/windowed/documents`, json("POST", { id, time, text: `a text of the ${time}, which is number ${id}` }));
  for (const [id, time] of [["1", "2026-01-01T00:00:00Z"], ["2", "2026-01-02T00:00:00Z"]]) assert.equal((await insert(id, time)).status, 200);
  const page = await openConsole(browser, open.url);
  assert.match(await page.textContent('tr:has-text("windowed")'), /2d, 50\s%\sfilled/);
  assert.match(await page.textContent('tr:has-text("news")'), /–/);
  await page.waitForSelector("text=duplicates among these: 0.0 per second");
  await fetch(`${open.url}/v1/collections/windowed`, { method: "DELETE" });
});

test("the keys of a list move, search and are shown", { skip }, async () => {
  const page = await openConsole(browser, open.url);
  await page.click("#tab-clusters");
  await page.waitForSelector('#clusters-0[aria-selected="true"]');
  const selected = (at) => page.waitForSelector(`#clusters-${at}[aria-selected="true"]`);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await selected(2);
  await page.keyboard.press("k");
  await selected(1);
  // Keys that come before the page is drawn again count as well.
  await page.evaluate(() => {
    for (const key of ["j", "j", "k"]) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  });
  await selected(2);
  await page.keyboard.press("k");
  await selected(1);
  // Nothing is marked here, so the keys of marks do nothing.
  await page.keyboard.press("y");
  await selected(1);
  await page.keyboard.press("?");
  await page.waitForSelector("aside.keys");
  await checkPage(page, "the keys");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("aside.keys").count(), 0);
  await page.keyboard.press("/");
  await page.keyboard.type("cluster:>99");
  await page.waitForSelector("text=0 entries");
});

test("a text is checked, and why it repeats another is shown", { skip }, async () => {
  const page = await openConsole(browser, open.url);
  await page.click("#tab-check");
  await page.waitForSelector("textarea");
  await page.fill("textarea", `${hostile[0]} once more`);
  await page.click("text=Look, do not insert");
  await page.waitForSelector("text=It repeats a kept document");
  await page.waitForSelector(".sides ins");
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  await page.fill("textarea", "這艘舊船在黎明時分離開了安靜的港口，誰也不知道它要到哪裡去");
  await page.fill("input", "zh-new");
  await page.click('button:text-is("Insert")');
  await page.waitForSelector("text=It repeats nothing and is kept");
  const stored = await fetch(`${open.url}/v1/collections/news/documents/zh-new`);
  assert.equal(stored.status, 200);
  assert.deepEqual(page.faults, []);
});

test("nothing is checked before the collections are known", { skip }, async () => {
  const page = await openConsole(browser, open.url);
  const held = await hold(page, "**/v1/collections");
  await page.click("#tab-check");
  await page.fill("textarea", `${hostile[0]} once more`);
  assert.ok(await page.isDisabled(".button.strong"));
  held.release();
  await page.click(".button.strong");
  await page.waitForSelector("text=It repeats a kept document");
});

test("what arrives late of another collection is not shown", { skip }, async () => {
  const json = (method, body) => ({ method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const other = `${open.url}/v1/collections/other`;
  assert.equal((await fetch(other, json("PUT", { threshold: 0.9 }))).status, 201);
  try {
    for (const id of ["first", "second"]) await fetch(`${other}/documents`, json("POST", { id, text: "the same words in both of these documents" }));
    const page = await openConsole(browser, open.url);
    const thresholds = [];
    page.on("request", (it) => it.url().endsWith("/v1/compare") && thresholds.push(it.postDataJSON().threshold));
    const clusters = await hold(page, "**/v1/collections/news/clusters*");
    const settings = await hold(page, "**/v1/collections/news");
    await page.click("#tab-clusters");
    await page.selectOption("select >> nth=1", "news");
    await Promise.all([clusters.asked, settings.asked]);
    await page.selectOption("select >> nth=1", "other");
    await page.waitForSelector(".entry:has-text('first')");
    await page.waitForSelector(".sides");
    const late = ["/news/clusters", "/collections/news"].map((end) => page.waitForResponse((it) => new URL(it.url()).pathname.endsWith(end)));
    clusters.release();
    settings.release();
    for (const response of await Promise.all(late)) await response.finished();
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    await page.waitForSelector(".sides");
    assert.equal(await page.locator(".entry:has-text('first')").count(), 1);
    assert.deepEqual(thresholds, [0.9]);
  } finally {
    await fetch(other, { method: "DELETE" });
  }
});

test("a change that is clicked twice is sent once", { skip }, async () => {
  const page = await openConsole(browser, open.url);
  await page.click("#tab-collections");
  const created = [];
  page.on("request", (it) => it.method() === "PUT" && created.push(it.url()));
  const put = await hold(page, "**/v1/collections/twice");
  await page.click("a:has-text('New collection')");
  await page.fill(".setting input >> nth=0", "twice");
  const create = page.locator(".button.strong >> nth=-1");
  await create.evaluate((it) => {
    it.click();
    it.click();
  });
  await put.asked;
  assert.ok(await create.isDisabled());
  put.release();
  await page.waitForSelector("h2:has-text('twice')");
  assert.equal(created.length, 1);
  await page.click("button:has-text('Delete') >> nth=-1");
  await page.fill("input[autocomplete=off]", "twice");
  await page.locator(".button.danger").evaluate((it) => {
    it.click();
    it.click();
  });
  await page.waitForSelector("h2:has-text('news')");
  assert.equal(await page.locator("[role=alert]").count(), 0);
});

test("clusters and comparisons are shown", { skip }, async () => {
  const page = await openConsole(browser, open.url);
  await page.click("#tab-clusters");
  await page.waitForSelector(".entry");
  await page.waitForSelector(".sides");
  await page.click("#tab-compare");
  await page.fill("textarea >> nth=0", "the boat left at dawn with nine men on board");
  await page.fill("textarea >> nth=1", "the boat left at dawn with ten men on board");
  await page.click("button:has-text('Compare') >> nth=-1");
  await page.waitForSelector(".sides del");
  assert.equal(await page.textContent(".sides del"), "nine");
  await checkPage(page, "a comparison in the console");
});

test("two documents are taken by their ids, and compared under the settings of their collection", { skip }, async () => {
  const page = await openConsole(browser, open.url);
  await page.click("#tab-compare");
  await page.selectOption("select >> nth=1", "news");
  for (const [at, id] of ["g3-0", "g3-4"].entries()) {
    await page.fill(`main .line input >> nth=${at}`, id);
    await page.click(`text=Take the document >> nth=${at}`);
    await page.waitForFunction((side) => document.querySelectorAll("textarea")[side].value !== "", at);
  }
  await page.click("button.strong");
  await page.waitForSelector("text=threshold 0.6");
  assert.match(await page.textContent(".sides .left.title"), /g3-0/);
  await page.fill("main .line input >> nth=0", "no such id");
  await page.click("text=Take the document >> nth=0");
  await page.waitForSelector("[role=alert]:has-text('no such id')");
});

test("texts that are too long for every step are shown with their passages, and those of 10 MB by their beginnings", { skip }, async () => {
  const put = { method: "PUT", headers: { "content-type": "application/json" }, body: "{}" };
  await fetch(`${open.url}/v1/collections/long`, put);
  const write = (bytes) => Array.from({ length: bytes / 9 }, (_, at) => `word${(at * 7919) % 99_991}`).join(" ").slice(0, bytes);
  for (const [id, text] of [["long-0", write(100_000)], ["long-1", `${write(100_000)} end`], ["huge-0", `huge ${write(10_000_000)}`], ["huge-1", `huge ${write(10_000_000)} end`]]) {
    const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ id, text }) };
    assert.equal((await fetch(`${open.url}/v1/collections/long/documents`, post)).status, 200);
  }
  const page = await openConsole(browser, open.url);
  await page.click("#tab-clusters");
  await page.selectOption("select >> nth=1", "long");
  await page.click('.entry:has-text("long-0")');
  await page.waitForSelector("text=more than 64 KiB together");
  assert.ok((await page.locator(".sides mark").count()) >= 2);
  await page.click('.entry:has-text("huge-0")');
  await page.waitForSelector("text=Their beginnings are shown", { timeout: 60_000 });
  assert.equal((await page.textContent(".sides .left.text")).length, 200_000);
  assert.deepEqual(page.faults, []);
  await fetch(`${open.url}/v1/collections/long`, { method: "DELETE" });
});

test("a key is asked for and kept in memory only", { skip }, async () => {
  const page = await openConsole(browser, locked.url);
  await page.waitForSelector("input[type=password]");
  await checkPage(page, "the form of the key");
  await page.fill("input[type=password]", "a key of some length");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".stat");
  assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]), [0, 0, ""]);
  await page.reload();
  await page.waitForSelector("input[type=password]");
});

test("a page of another origin can neither read nor insert nor frame", { skip }, async () => {
  const other = createServer((_, response) => response.setHeader("content-type", "text/html").end("<!doctype html><title>other</title>")).listen(0, "127.0.0.1");
  await new Promise((resolve) => other.once("listening", resolve));
  const page = await (await browser.newContext()).newPage();
  await page.goto(`http://localhost:${other.address().port}/`);
  const tried = await page.evaluate(async (url) => {
    const attempt = (path, options) => fetch(url + path, options).then((it) => it.text(), () => "refused");
    const json = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ id: "evil", text: "evil" }) };
    const plain = { method: "POST", mode: "no-cors", headers: { "content-type": "text/plain" }, body: JSON.stringify({ id: "evil", text: "evil" }) };
    return [await attempt("/v1/collections", {}), await attempt("/v1/collections/news/documents", json), await attempt("/v1/collections/news/documents", plain)];
  }, open.url);
  other.close();
  assert.deepEqual(tried.slice(0, 2), ["refused", "refused"]);
  assert.equal((await fetch(`${open.url}/v1/collections/news/documents/evil`)).status, 404);
  const page2 = await fetch(open.url, { headers: { accept: "text/html" } });
  assert.match(page2.headers.get("content-security-policy"), /frame-ancestors 'none'/);
  assert.equal(page2.headers.get("x-frame-options"), "DENY");
});
