// What a person does in the console of a running service: collections, the picture of a cluster, labels, dropped files.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Place, checkPage, droppedFiles, launch, openConsole, sampleRows, skip, startNews } from "./support.mjs";

let browser, place, open;

before(async () => {
  if (skip) return;
  place = new Place();
  open = await startNews(place);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  open?.child.kill();
  place?.remove();
});

const settingsOf = async (name) => (await fetch(`${open.url}/v1/collections/${name}`)).json();

test("a collection is created with the curve of its threshold, copied and deleted", { skip }, async () => {
  const page = await openConsole(browser, open.url);
  await page.click("#tab-collections");
  await page.click("text=New collection");
  await page.click("text=More settings");
  const curve = () => page.getAttribute("#planned-curve path.curve", "d");
  const before = await curve();
  await page.locator("#planned-curve").scrollIntoViewIfNeeded();
  await page.fill("input[type=range]", "0.9");
  assert.match(await page.textContent("#planned-curve"), /12 bands of 10 rows/);
  assert.notEqual(await curve(), before);
  await page.fill(".setting input:not([type]) >> nth=0", "made-here");
  await page.fill("input[placeholder='2d']", "3d");
  await checkPage(page, "the form of a collection");
  await page.click('button:text-is("Create")');
  await page.waitForSelector('.entry[aria-selected="true"]:has-text("made-here")');
  const { settings } = await settingsOf("made-here");
  assert.deepEqual([settings.threshold, settings.window, settings.method], [0.9, "3d", "auto"]);

  await page.fill("section:has-text('Change the window') input", "1d");
  await page.click('button:text-is("Change")');
  await page.waitForFunction(() => document.querySelector("dl.facts").textContent.includes("1d"));
  assert.equal((await settingsOf("made-here")).settings.window, "1d");

  await page.click("text=Make a snapshot");
  await page.waitForSelector("td:has-text('console-')");
  const listed = await (await fetch(`${open.url}/v1/snapshots?collection=made-here`)).json();
  assert.equal(listed.snapshots.length, 1);

  await page.click("text=Delete the collection …");
  const last = page.locator("text=Delete for ever");
  assert.ok(await last.isDisabled());
  await page.fill("section:has-text('Type its name') input", "made-her");
  assert.ok(await last.isDisabled());
  await page.fill("section:has-text('Type its name') input", "made-here");
  await last.click();
  await page.waitForSelector('.entry:has-text("made-here")', { state: "detached" });
  assert.equal((await fetch(`${open.url}/v1/collections/made-here`)).status, 404);
});

test("a mistake of a new collection is shown beside its field, and gone once the field changes", { skip }, async () => {
  const page = await openConsole(browser, open.url, {}, "#/new");
  const mistakeOf = async (label) => page.locator(`.setting:has-text('${label}') [role=alert]`).allInnerTexts();
  const none = () => page.waitForSelector("[role=alert]", { state: "detached" });
  await page.click('button:text-is("Create")');
  await page.waitForSelector(".setting.wrong");
  assert.match((await mistakeOf("What is it called?"))[0], /begins with a letter or a digit/);
  await page.fill(".setting input >> nth=0", "news");
  await none();
  await page.click('button:text-is("Create")');
  await page.waitForSelector(".setting.wrong");
  assert.match((await mistakeOf("What is it called?"))[0], /a collection news already/);
  await page.fill(".setting input >> nth=0", "with-mistakes");
  await page.fill("input[placeholder='2d']", "two days");
  await page.click('button:text-is("Create")');
  await page.waitForSelector(".setting.wrong");
  assert.match((await mistakeOf("How far back"))[0], /such as 90m/);
  assert.deepEqual(await mistakeOf("What is it called?"), []);
  // What only the service knows is told in its words, at the field that it names.
  await page.fill("input[placeholder='2d']", "0s");
  await page.click('button:text-is("Create")');
  await page.waitForSelector(".setting.wrong");
  assert.match((await mistakeOf("How far back"))[0], /window/);
  await checkPage(page, "a mistake beside its field");
  await page.fill("input[placeholder='2d']", "2d");
  await none();
  assert.equal((await fetch(`${open.url}/v1/collections/with-mistakes`)).status, 404);
});

test("the planned curve is that of the service", { skip }, async () => {
  const { createServer: createVite } = await import("vite");
  const vite = await createVite({ configFile: false, logLevel: "error", server: { middlewareMode: true, ws: false }, appType: "custom" });
  try {
    const { planBands } = await vite.ssrLoadModule("/src/console/plan.ts");
    place.write("two.jsonl", '{"id":1,"text":"a b c d e"}\n{"id":2,"text":"a b c d f"}\n');
    for (const threshold of [0.5, 0.6, 0.75, 0.8, 0.85, 0.9, 0.95]) {
      place.run("pairs", "two.jsonl", "--method", "minhash", "--threshold", String(threshold), "-o", "two.tsv", "--report", "two.html");
      const data = JSON.parse(/id="data">(.*?)<\/script>/s.exec(place.read("two.html"))[1]);
      assert.deepEqual(planBands(threshold), { bands: data.plan.bands, rows: data.plan.rows }, String(threshold));
    }
  } finally {
    await vite.close();
  }
});

test("a cluster is drawn as a ring and by arrival, and its members are compared with each other", { skip }, async () => {
  const page = await openConsole(browser, open.url);
  await page.click("#tab-clusters");
  await page.waitForSelector(".graph .member");
  const places = () => page.locator(".graph .member").evaluateAll((all) => all.map((it) => it.getAttribute("cx")));
  const ring = await places();
  assert.ok(ring.length >= 2);
  assert.equal(await page.locator(".graph .link").count(), ring.length);
  await page.click("text=by arrival");
  assert.notDeepEqual(await places(), ring);
  await page.click("text=with each other");
  const pairs = (ring.length * (ring.length - 1)) / 2;
  await page.waitForFunction((count) => document.querySelectorAll(".graph .link").length === count, ring.length + pairs);
  await page.locator(".graph .member >> nth=1").click();
  assert.equal(await page.getAttribute("#members-1", "aria-selected"), "true");
  await page.fill(".search", "cluster:>2");
  assert.match(await page.textContent("[role=status]"), /\d+ entr/);
  await page.selectOption("select >> nth=2", "stretched");
  await checkPage(page, "the picture of a cluster");
});

test("a verdict is overruled by a key, listed, and taken back", { skip }, async () => {
  const json = { "content-type": "application/json" };
  await fetch(`${open.url}/v1/collections/overruled`, { method: "PUT", headers: json, body: "{}" });
  for (const [id, text] of [["first", "The ferry leaves at seven."], ["second", "THE FERRY leaves at seven!"], ["third", "the ferry leaves at seven"]]) {
    await fetch(`${open.url}/v1/collections/overruled/documents`, { method: "POST", headers: json, body: JSON.stringify({ id, text }) });
  }
  const documentOf = async (id) => (await fetch(`${open.url}/v1/collections/overruled/documents/${id}`)).json();
  const page = await openConsole(browser, open.url);
  await page.click("#tab-clusters");
  await page.waitForSelector(".graph .member");
  await page.selectOption("select >> nth=1", "overruled");
  await page.waitForFunction(() => document.querySelectorAll(".graph .member").length === 2);
  await page.waitForSelector(".marks");
  assert.equal((await documentOf("second")).of, "first");
  await page.keyboard.press("n");
  await page.waitForSelector(".decisions li");
  assert.match(await page.textContent(".decisions"), /first.*second/);
  assert.equal((await documentOf("second")).verdict, "kept");
  await page.waitForFunction(() => document.querySelectorAll(".graph .member").length === 1);
  const effect = async (text) => page.waitForSelector(`p[role=status]:has-text(${JSON.stringify(text)})`);
  await effect("Marked as different. second is now kept.");
  await checkPage(page, "decisions of people");
  await page.keyboard.press("?");
  assert.match(await page.textContent("aside.keys"), /y n u same, different, take back/);
  await page.keyboard.press("Escape");
  // The selection is another pair now, and the key takes back the last decision.
  await page.keyboard.press("u");
  await effect("The decision on first and second is taken back. second is now a duplicate of first (1).");
  await page.waitForFunction(() => document.querySelectorAll(".graph .member").length === 2);
  assert.equal((await documentOf("second")).of, "first");
  await page.waitForSelector(".marks");
  await page.keyboard.press("u");
  await effect("This pair has no decision that could be taken back.");
  // The document that was judged again is the last one now. Each pair is decided once the cluster before has gone.
  for (const [remaining, verdict] of [["first", "third is now kept."], ["third", "second is now a duplicate of third (1)."], [null, "second is now kept."]]) {
    await page.waitForSelector(".marks");
    await page.keyboard.press("n");
    await effect(`Marked as different. ${verdict}`);
    if (remaining === null) await page.waitForSelector("text=No document of this collection");
    else await page.waitForSelector(`.split:has(h2:has-text(${JSON.stringify(remaining)})):has(.decisions):not(:has(.graph .member + .member))`);
  }
  // Nothing of the collection is a cluster now, and the decisions are there all the same.
  await page.waitForFunction(() => document.querySelectorAll(".decisions li").length === 3);
  await page.keyboard.press("u");
  await effect("The decision on third and second is taken back. second is now a duplicate of third (1).");
  await page.waitForFunction(() => document.querySelectorAll(".decisions li").length === 2);
  await page.click(".decisions button");
  await effect("The decision on first and third is taken back.");
  await page.waitForFunction(() => document.querySelectorAll(".decisions li").length === 1);
  await page.click(".decisions button");
  await page.waitForSelector(".decisions", { state: "detached" });
  await page.waitForFunction(() => document.querySelectorAll(".graph .member").length === 2);
  assert.equal((await documentOf("second")).of, "first");
  assert.equal(await page.locator("[role=alert]").count(), 0);
  await fetch(`${open.url}/v1/collections/overruled`, { method: "DELETE" });
});

test("what the service refuses is said in Chinese, or behind the Chinese title of its code", { skip }, async () => {
  const page = await openConsole(browser, open.url, { locale: "zh-CN" });
  const refuse = async (code, detail) => {
    const body = JSON.stringify({ type: "about:blank", title: "A title", status: 400, code, detail });
    await page.unroute("**/v1/snapshots*");
    await page.route("**/v1/snapshots*", (route) => route.fulfill({ status: 400, contentType: "application/problem+json", body }));
    await page.click("#tab-overview");
    await page.click("#tab-administration");
  };
  await refuse("bad_request", "the service has no directory for snapshots: start it with --snapshots PLACE");
  await page.waitForSelector("p.note:has-text('服务没有设置快照目录，启动时请加 --snapshots 目录')");
  await refuse("disk", "something new");
  await page.waitForSelector("p.note:has-text('磁盘操作失败：something new')");
  assert.equal(await page.getAttribute("p.note [lang=en]", "lang"), "en");
  assert.deepEqual(page.faults, []);
});

test("a cluster of a thousand members is drawn, with lines to the least similar ones", { skip }, async () => {
  const words = (at) => `${"a common beginning of twelve words that all of these short texts share with "} ${at}`;
  const rows = Array.from({ length: 1001 }, (_, at) => JSON.stringify({ id: `many-${at}`, text: words(at) })).join("\n");
  const put = { method: "PUT", headers: { "content-type": "application/json" }, body: JSON.stringify({ threshold: 0.5 }) };
  await fetch(`${open.url}/v1/collections/many`, put);
  await fetch(`${open.url}/v1/collections/many/documents`, { method: "POST", headers: { "content-type": "application/x-ndjson" }, body: rows });
  const page = await openConsole(browser, open.url);
  await page.click("#tab-clusters");
  await page.waitForSelector(".graph .member");
  await page.selectOption("select >> nth=1", "many");
  await page.waitForFunction(() => document.querySelectorAll(".graph .member").length === 1000);
  assert.equal(await page.locator(".graph .link").count(), 100);
  assert.match(await page.textContent("main"), /Of 1,000 members the 100 least similar ones have a line/);
  const start = performance.now();
  await page.click("text=by arrival");
  await page.waitForSelector("button[aria-pressed=true]:has-text('by arrival')");
  assert.ok(performance.now() - start < 30_000);
  // Nothing of the collection before is looked for in this one.
  assert.equal(await page.locator("[role=alert]").count(), 0);
  await fetch(`${open.url}/v1/collections/many`, { method: "DELETE" });
});

test("labels move precision and recall, choose a threshold for a new collection, and are decisions of the next run", { skip }, async () => {
  const page = await openConsole(browser, open.url, { acceptDownloads: true });
  await page.click("#tab-label");
  await page.selectOption("select >> nth=1", "news");
  await page.click("button:has-text('Collect pairs')");
  await page.waitForSelector(".marks");
  const origins = await page.locator(".entry .more").allTextContents();
  assert.ok(origins.some((it) => it.includes("duplicate")) && origins.some((it) => it.includes("shares a passage")), String(origins));
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  await page.selectOption("select >> nth=2", "farthest");
  await page.waitForSelector('.entry[aria-posinset="1"][aria-selected="true"]');
  for (const key of ["y", "y"]) await page.keyboard.press(key);
  const recall = () => page.textContent(".stat >> nth=2 >> b");
  assert.equal((await recall()).trim().replace("\u00a0", " "), "100 %");
  await page.selectOption("select >> nth=2", "nearest");
  await page.waitForSelector('.entry[aria-posinset="1"][aria-selected="true"]');
  for (const key of ["y", "n"]) await page.keyboard.press(key);
  assert.notEqual((await recall()).trim().replace("\u00a0", " "), "100 %");
  assert.equal((await page.textContent(".stat >> nth=0 >> b")).trim(), "4");
  await page.waitForSelector("path.curve.recall", { state: "attached" });
  await checkPage(page, "labels");

  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save decisions")]);
  place.write("labels.jsonl", readFileSync(await download.path(), "utf8"));
  place.write("in.jsonl", sampleRows());
  const summary = JSON.parse(place.run("dedup", "in.jsonl", "--threshold", "0.6", "--dry-run", "--decisions", "labels.jsonl", "--json"));
  assert.deepEqual([summary.decisions.same, summary.decisions.different, summary.decisions.of_other_recipes], [3, 1, 0]);
  assert.equal(summary.decisions.without_pair, 0);
  // A corpus of labels has no bad rows.
  place.write("corpus.jsonl", sampleRows().split("\n").filter((row) => row.includes('"text":')).join("\n"));
  const evaluated = JSON.parse(place.run("eval", "labels.jsonl", "--corpus", "corpus.jsonl", "--json"));
  assert.deepEqual([evaluated.labelled.similar, evaluated.labelled.different], [3, 1]);

  await page.fill("input[type=number]", "0.82");
  await page.keyboard.press("Tab");
  await page.fill("label:has-text('name') input", "news-labelled");
  await page.click("button:has-text('Create with threshold 0.82')");
  await page.waitForSelector("text=The collection news-labelled has the threshold 0.82");
  assert.equal((await settingsOf("news-labelled")).settings.threshold, 0.82);
  assert.equal((await settingsOf("news")).settings.threshold, 0.6);
  await fetch(`${open.url}/v1/collections/news-labelled`, { method: "DELETE" });
});

test("passages of dropped files are shown and saved as the report of the command", { skip }, async () => {
  const page = await openConsole(browser, open.url, { acceptDownloads: true });
  await page.click("#tab-passages");
  assert.ok(await page.isDisabled("text=Find passages"));
  await page.setInputFiles("input[type=file] >> nth=0", droppedFiles());
  await page.waitForSelector("text=5 documents");
  const refused = (await page.locator("[role=alert]").allTextContents()).sort();
  assert.deepEqual(refused.map((it) => it.split(": ")[0]), ["broken.docx", "notes.jsonl:2", "picture.png"]);
  assert.match(refused[0], /broken\.docx: the file is incomplete or damaged; ask for it again/);
  await page.click("text=Find passages");
  await page.waitForSelector("#a1");
  assert.match(await page.textContent("#a1"), /a passage of more than twelve words/);
  await page.click('.entry:has-text("<b>row</b> 1")');
  assert.match(await page.textContent(".sides"), /U\+202E/);
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  await checkPage(page, "passages of dropped files");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save the report")]);
  place.write("saved.html", readFileSync(await download.path(), "utf8"));
  assert.match(place.read("saved.html"), /"kind":"passages"/);

  await page.check("input[type=radio] >> nth=1");
  assert.ok(await page.isDisabled("text=Find passages"));
  await page.setInputFiles("input[type=file] >> nth=1", [{ name: "source.txt", mimeType: "text/plain", buffer: Buffer.from(droppedFiles()[0].buffer) }]);
  await page.click("text=Find passages");
  await page.waitForSelector(".sides .right.title:has-text('source.txt')");
});
