// The console of a running service.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Place, checkPage, checkWidth, hostile, launch, program, sampleRows, skip } from "./support.mjs";

const sections = ["overview", "check", "clusters", "compare"];
let browser, place, open, locked;

/** Starts a service on a free port, and waits until it answers. */
async function startService(data, environment = {}) {
  const probe = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => probe.once("listening", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  const child = spawn(program, ["serve", "--data", place.file(data), "--listen", `127.0.0.1:${port}`], {
    stdio: "ignore",
    env: { ...process.env, ...environment },
  });
  const url = `http://127.0.0.1:${port}`;
  for (let attempt = 0; attempt < 200; attempt += 1) {
    if (await fetch(`${url}/livez`).then((it) => it.ok, () => false)) return { child, url };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the service does not answer");
}

before(async () => {
  if (skip) return;
  place = new Place();
  open = await startService("open");
  locked = await startService("locked", { LOOKALIKE_ADMIN_KEY: "a key of some length" });
  const put = { method: "PUT", headers: { "content-type": "application/json" }, body: JSON.stringify({ threshold: 0.6 }) };
  assert.equal((await fetch(`${open.url}/v1/collections/news`, put)).status, 201);
  const rows = sampleRows().split("\n").filter((row) => row.startsWith('{"id"') && row.includes('"text"')).join("\n");
  const post = { method: "POST", headers: { "content-type": "application/x-ndjson" }, body: rows };
  assert.equal((await fetch(`${open.url}/v1/collections/news/documents`, post)).status, 200);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  open?.child.kill();
  locked?.child.kill();
  place?.remove();
});

async function openConsole(url, options = {}) {
  const context = await browser.newContext({ locale: "en-GB", viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) page.faults.push(`request to ${request.url()}`);
  });
  await page.goto(url);
  return page;
}

test("every section is accessible in light and dark, in both languages and on a phone", { skip }, async () => {
  for (const [colorScheme, locale, width] of [["light", "en-GB", 1440], ["dark", "zh-CN", 1440], ["dark", "en-GB", 390], ["light", "zh-CN", 390]]) {
    const page = await openConsole(open.url, { colorScheme, locale, viewport: { width, height: 844 } });
    await page.waitForSelector(".stat");
    for (const section of sections) {
      await page.click(`#tab-${section}`);
      await page.waitForTimeout(300);
      await checkPage(page, `${section}, ${colorScheme}, ${locale}, ${width}`);
      await checkWidth(page, `${section}, ${locale}, ${width}`);
    }
    await page.context().close();
  }
});

test("the overview counts what is inserted meanwhile", { skip }, async () => {
  const page = await openConsole(open.url);
  const kept = async () => Number((await page.textContent(".stat >> nth=0 >> b")).replace(/\D/g, ""));
  await page.waitForSelector(".stat");
  const first = await kept();
  const body = JSON.stringify({ id: "new", text: "something entirely new that resembles nothing else in this small collection of texts" });
  await fetch(`${open.url}/v1/collections/news/documents`, { method: "POST", headers: { "content-type": "application/json" }, body });
  await page.waitForFunction((count) => Number(document.querySelector(".stat b").textContent.replace(/\D/g, "")) === count, first + 1);
});

test("a text is checked, and why it repeats another is shown", { skip }, async () => {
  const page = await openConsole(open.url);
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

test("clusters and comparisons are shown", { skip }, async () => {
  const page = await openConsole(open.url);
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

test("a key is asked for and kept in memory only", { skip }, async () => {
  const page = await openConsole(locked.url);
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
