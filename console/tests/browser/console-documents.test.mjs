// The documents of a collection: listed, filtered, shown with all that is stored of them, and deleted.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Place, checkPage, launch, openConsole, skip, startService } from "./support.mjs";

let browser, place, open;

const json = { "content-type": "application/json" };
const documents = [
  '{"id":"first/1","text":"The old boat left the quiet harbour at dawn with nine men on board.","time":"2026-11-30T10:00:00Z","meta":{"source":"news","n":12345678901234567890}}',
  '{"id":"second","text":"THE OLD BOAT left the quiet harbour at dawn with nine men on board!","meta":{"source":"blog"}}',
  '{"id":"third","text":"The library stays open until ten in the evening from next Monday on.","meta":{"source":"news"}}',
];

before(async () => {
  if (skip) return;
  place = new Place();
  open = await startService(place, "data");
  await fetch(`${open.url}/v1/collections/news`, { method: "PUT", headers: json, body: "{}" });
  for (const body of documents) await fetch(`${open.url}/v1/collections/news/documents`, { method: "POST", headers: json, body });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  open?.child.kill();
  place?.remove();
});

const waitForEntries = (page, count) => page.waitForFunction((wanted) => document.querySelectorAll("#section .entry").length === wanted, count);

test("documents are listed from the last one, filtered by verdict and meta, and walked by keys", { skip }, async () => {
  const page = await openConsole(browser, open.url, {}, "#/documents/news");
  await waitForEntries(page, 3);
  await page.waitForFunction(() => document.querySelector("#section .entry")?.textContent.includes("library"));
  assert.equal(new URL(page.url()).hash, "#/documents/news/third");
  await page.waitForSelector(".facts");
  await page.keyboard.press("j");
  await page.waitForFunction(() => location.hash === "#/documents/news/second");
  await page.waitForSelector(".facts a:has-text('first/1')");
  await page.selectOption("#section select >> nth=2", "first");
  await page.waitForFunction(() => document.querySelector("#section .entry")?.textContent.includes("old boat"));
  await page.selectOption("#section select >> nth=1", "duplicate");
  await waitForEntries(page, 1);
  await page.selectOption("#section select >> nth=1", "");
  await page.fill(".search", "source=news");
  await page.keyboard.press("Enter");
  await waitForEntries(page, 2);
  await page.fill(".search", "source=none");
  await page.keyboard.press("Enter");
  await waitForEntries(page, 0);
  await checkPage(page, "documents that a filter finds");
});

test("an address shows a document with its time, its meta to the last digit, and requests", { skip }, async () => {
  const page = await openConsole(browser, open.url, {}, "#/documents/news/first%2F1");
  await page.waitForSelector(".facts");
  const shown = await page.innerText("#section");
  assert.match(shown, /30\/11\/2026/);
  if (await page.evaluate(() => "rawJSON" in JSON)) assert.match(shown, /12345678901234567890/);
  await page.click(".split > .stack details.requests summary");
  const commands = await page.locator(".split > .stack details.requests pre").allInnerTexts();
  assert.deepEqual(commands, [`curl ${open.url}/v1/collections/news/documents/first%2F1`, `curl -X DELETE ${open.url}/v1/collections/news/documents/first%2F1`]);
  assert.equal((await fetch(commands[0].replace("curl ", ""))).status, 200);
  await page.fill("#section form input", "nobody");
  await page.click("#section form button");
  await page.waitForSelector("text=The collection has no document nobody");
  await checkPage(page, "a document that is missing");
});

test("a document is deleted once that is confirmed, and leaves the list", { skip }, async () => {
  const page = await openConsole(browser, open.url, {}, "#/documents/news/third");
  await page.waitForSelector(".facts");
  await page.click("text=Delete the document");
  assert.equal((await fetch(`${open.url}/v1/collections/news/documents/third`)).status, 200);
  await page.click("text=Delete for ever");
  await waitForEntries(page, 2);
  assert.equal((await fetch(`${open.url}/v1/collections/news/documents/third`)).status, 404);
  await checkPage(page, "documents after one was deleted");
});

test("a new collection and a check are requests to try", { skip }, async () => {
  const page = await openConsole(browser, open.url, {}, "#/new");
  await page.fill("input >> nth=0", "mine");
  await page.click("details.requests summary");
  assert.match(await page.innerText("details.requests pre"), /^curl -X PUT \S+\/v1\/collections\/mine --json '\{"holds":"texts",/);
  await page.goto(`${open.url}/#/check/news`);
  await page.fill("textarea", "it's a text");
  await page.click("details.requests summary");
  assert.match(await page.innerText("details.requests pre"), /--json '\{"text":"it'\\''s a text"\}'$/);
  assert.deepEqual(page.faults, []);
});
