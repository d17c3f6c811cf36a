// How a person finds a way through the console: addresses, texts in lists, imports, empty places, what a text resembles.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Place, checkPage, droppedFiles, launch, openConsole, sampleRows, skip, startNews, startService } from "./support.mjs";

let browser, place, open, empty;

before(async () => {
  if (skip) return;
  place = new Place();
  [open, empty] = await Promise.all([startNews(place), startService(place, "empty")]);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  open?.child.kill();
  empty?.child.kill();
  place?.remove();
});

const json = (method, body) => ({ method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
const lines = (rows) => ({ method: "POST", headers: { "content-type": "application/x-ndjson" }, body: rows });
const statsOf = async (name) => (await fetch(`${open.url}/v1/collections/${name}/stats`)).json();
/** The first text of a group of the sample rows. */
const sampleText = (id) => JSON.parse(sampleRows().split("\n").find((row) => row.includes(`"id":"${id}"`))).text;
const file = (name, content) => ({ name, mimeType: "application/octet-stream", buffer: Buffer.from(content) });

test("a text that repeats nothing is shown beside the nearest one, with its similarity", { skip }, async () => {
  for (const [locale, said, among, look] of [
    ["en-GB", "It repeats nothing", /The most similar of all \d+ kept documents\. A match needs 0\.6\./, "Look, do not insert"],
    ["zh-CN", "没有重复", /全部 \d+ 篇保留的文档中最相似的一篇。 ?达到 0\.6 才算匹配。/, "只查看，不写入"],
  ]) {
    const page = await openConsole(browser, open.url, { locale }, "#/check/news");
    const half = sampleText("g5-0").split(" ").slice(0, 12).join(" ");
    await page.fill("textarea", `${half} and then it goes on with words of its own that no other text here has`);
    await page.click(`button:has-text("${look}")`);
    await page.waitForSelector(`h2:has-text("${said}")`);
    assert.match(await page.textContent("section[role=status]"), among);
    const nearest = page.locator("section[role=status] .button");
    assert.match(await nearest.innerText(), /g5-0\s+0\.[1-5]\d\d/);
    await page.waitForSelector(".sides ins");
    assert.match(await page.textContent(".sides .left.title"), /g5-0/);
    // The similarity beside the name is that of the comparison.
    const similarity = (await nearest.innerText()).match(/0\.\d+/)[0];
    assert.equal(await page.innerText("dl.facts .number"), similarity);
    await checkPage(page, `the nearest text, ${locale}`);
    await page.fill("textarea", "§§ ¶¶");
    await page.click(`button:has-text("${look}")`);
    await page.waitForSelector(locale === "en-GB" ? "text=none shares anything with it" : "text=没有任何共有之处");
    await page.context().close();
  }
});

test("a file that is dropped beside a box does not take the place of the page", { skip }, async () => {
  const page = await openConsole(browser, open.url, {}, "#/passages");
  await page.waitForSelector(".drop");
  const isKept = await page.evaluate(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["text"], "essay.txt"));
    const kept = (kind) => !document.body.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer }));
    return kept("dragover") && kept("drop");
  });
  assert.ok(isKept);
  assert.equal(await page.locator(".drop .names").count(), 0);
  await page.context().close();
});

test("a text that was inserted is shown beside the nearest one, too", { skip }, async () => {
  const page = await openConsole(browser, open.url, {}, "#/check/news");
  const half = sampleText("g7-0").split(" ").slice(0, 12).join(" ");
  await page.fill("textarea", `${half} before it turns to matters that are its very own and of nobody else`);
  await page.fill("input", "inserted-here");
  await page.click('button:text-is("Insert")');
  await page.waitForSelector("h2:has-text('It repeats nothing and is kept')");
  assert.match(await page.innerText("section[role=status] .button"), /g7-0/);
  await fetch(`${open.url}/v1/collections/news/documents/inserted-here`, { method: "DELETE" });
});

test("verdicts and problems of the request before are gone with the next input", { skip }, async () => {
  const page = await openConsole(browser, open.url, {}, "#/check/news");
  await page.fill("textarea", sampleText("g3-0"));
  await page.click("text=Look, do not insert");
  await page.waitForSelector("h2:has-text('It repeats a kept document')");
  await page.waitForSelector(".sides");
  await page.fill("textarea", "another text");
  assert.equal(await page.locator("section[role=status], .sides").count(), 0);
  // An id with other content is refused; the next request ends what was said of it.
  await page.fill("input", "g3-0");
  await page.click('button:text-is("Insert")');
  await page.waitForSelector("[role=alert]:has-text('g3-0')");
  assert.equal(await page.locator("section[role=status]").count(), 0);
  await page.click("text=Look, do not insert");
  await page.waitForSelector("section[role=status]");
  assert.equal(await page.locator("[role=alert]").count(), 0);
  await page.click('button:text-is("Insert")');
  await page.waitForSelector("[role=alert]");
  await page.fill("input", "g3-0-other");
  await page.waitForSelector("[role=alert]", { state: "detached" });
  await page.click('button:text-is("Insert")');
  await page.waitForSelector("section[role=status]");
  await page.fill("input", "");
  assert.equal(await page.locator("section[role=status]").count(), 0);
  await fetch(`${open.url}/v1/collections/news/documents/g3-0-other`, { method: "DELETE" });

  await page.click("#tab-compare");
  await page.fill("textarea >> nth=0", "the boat left at dawn");
  await page.fill("textarea >> nth=1", "the boat left at noon");
  await page.click("button.strong");
  await page.waitForSelector(".sides");
  await page.fill("textarea >> nth=1", "the boat left at night");
  assert.equal(await page.locator(".sides").count(), 0);
});

test("words that are equal after normalisation are neither red nor green", { skip }, async () => {
  const page = await openConsole(browser, open.url, {}, "#/compare/news");
  await page.fill("textarea >> nth=0", "THE BOAT LEFT AT DAWN, with nine men 這艘舊船");
  await page.fill("textarea >> nth=1", "The boat left at dawn; with ten men 这艘旧船");
  await page.click("button.strong");
  await page.waitForSelector(".sides");
  assert.deepEqual(await page.locator(".sides del").allInnerTexts(), ["nine"]);
  assert.deepEqual(await page.locator(".sides ins").allInnerTexts(), ["ten"]);
  const alike = (await page.locator(".sides .left .alike").allInnerTexts()).join("|");
  assert.match(alike, /THE.*BOAT.*DAWN.*這/s);
});

test("three similarities are shown, and all of them after a click", { skip }, async () => {
  const page = await openConsole(browser, open.url, {}, "#/compare/news");
  await page.fill("textarea >> nth=0", "the boat left at dawn with nine men on board");
  await page.fill("textarea >> nth=1", "the boat left at dawn with ten men on board");
  await page.click("button.strong");
  await page.waitForSelector("table.figures");
  const rows = page.locator("table.figures tr:visible");
  assert.equal(await rows.count(), 3);
  assert.match(await rows.first().innerText(), /Jaccard/);
  await page.click("summary:has-text('similarities and distances')");
  assert.ok((await rows.count()) > 15);
  await checkPage(page, "all similarities");
});

test("lists show texts beside ids", { skip }, async () => {
  const page = await openConsole(browser, open.url, {}, "#/clusters/news");
  await page.waitForSelector(".entry .excerpt");
  await page.waitForFunction(() => [...document.querySelectorAll("#clusters-0, #members-0")].every((it) => it.querySelector(".excerpt")) && document.querySelector("#members-0"));
  for (const entry of ["#clusters-0", "#members-0"]) {
    const id = (await page.innerText(`${entry} .more`)).split("·")[0].trim();
    const shown = await page.innerText(`${entry} .excerpt`);
    const { text } = await (await fetch(`${open.url}/v1/collections/news/documents/${encodeURIComponent(id)}`)).json();
    assert.ok(text.startsWith(shown.slice(0, 60)) && shown.length >= 40, `${id}: ${shown}`);
  }
  await page.fill(".search", "hostile");
  await page.waitForSelector(".entry:has-text('U+202E')");
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  await page.click("#tab-label");
  await page.click("button:has-text('Collect pairs')");
  await page.waitForSelector("#pairs-0 .excerpt");
  assert.ok((await page.innerText("#pairs-0 .excerpt")).length >= 10);
  await checkPage(page, "texts in lists");
});

test("each place has an address: reloading, Back and links lead to it", { skip }, async () => {
  const page = await openConsole(browser, open.url);
  const hash = () => page.evaluate(() => location.hash);
  await page.click("td a:has-text('news') >> nth=0");
  await page.waitForSelector("h2:text-is('news')");
  assert.equal(await hash(), "#/collections/news");
  await page.click("a.button:has-text('Clusters')");
  await page.waitForSelector('#clusters-0[aria-selected="true"]');
  await page.click("#clusters-2");
  await page.waitForFunction(() => /^#\/clusters\/news\/.+/.test(location.hash));
  await page.waitForSelector('#clusters-2[aria-selected="true"]');
  await page.waitForFunction(() => decodeURIComponent(location.hash).endsWith(document.querySelector("#clusters-2 .more bdi").textContent));
  const shown = await hash();
  await page.reload();
  await page.waitForSelector('#clusters-2[aria-selected="true"]');
  assert.equal(await hash(), shown);
  await page.click("#tab-check");
  await page.waitForSelector("textarea");
  assert.equal(await hash(), "#/check/news");
  await page.goBack();
  await page.waitForSelector('#clusters-2[aria-selected="true"]');
  assert.equal(await hash(), shown);
  await page.goBack();
  await page.waitForSelector("h2:text-is('news')");
  await page.goBack();
  await page.waitForSelector(".stat");
  await page.goForward();
  await page.waitForSelector("h2:text-is('news')");
  // A number in a text leads to the passage in the other one, and the address stays.
  await page.goto(`${open.url}/#/compare/news`);
  const shared = "a passage of more than twelve words that both of these texts have in common with one another";
  await page.fill("textarea >> nth=0", `One begins. ${shared}`);
  await page.fill("textarea >> nth=1", `The other ends. ${shared}`);
  await page.click("button.strong");
  await page.click("button:has-text('1 shared passage')");
  await page.click("#a1 a");
  await page.waitForSelector("#b1.target");
  assert.equal(await hash(), "#/compare/news");
  // A link to a duplicate leads to its cluster.
  await page.goto(`${open.url}/#/clusters/news/g3-2`);
  await page.waitForSelector("h2:has-text('g3-0')");
  assert.deepEqual(page.faults, []);
});

test("an empty place says what to do next, and leads there", { skip }, async () => {
  const page = await openConsole(browser, empty.url);
  await page.waitForSelector("text=There is no collection yet");
  await checkPage(page, "the overview of an empty service");
  for (const tab of ["check", "clusters", "label", "collections"]) {
    await page.click(`#tab-${tab}`);
    await page.waitForSelector("a:has-text('New collection')");
  }
  await page.click("a:has-text('New collection')");
  await page.fill(".setting input >> nth=0", "first");
  await page.click('button:text-is("Create")');
  await page.waitForSelector("h2:text-is('first')");
  await page.click("#tab-clusters");
  await page.waitForSelector("text=This collection has no documents yet");
  await page.click("a:has-text('Import documents')");
  await page.waitForSelector("h2:text-is('Import documents')");
  await page.setInputFiles("input[type=file]", [file("one.jsonl", '{"id":"1","text":"a text that nothing else here resembles in the least"}\n')]);
  await page.waitForSelector("text=Documents kept: 1, duplicates: 0.");
  await page.click("#tab-clusters");
  await page.waitForSelector("text=No document of this collection has a near-duplicate");
  await page.click("a:has-text('Check a text')");
  await page.waitForSelector("textarea");
  assert.equal(await page.evaluate(() => location.hash), "#/check/first");
  await page.click("#tab-label");
  await page.click("button:has-text('Collect pairs')");
  await page.waitForSelector("a.button:has-text('Import documents')");
  await checkPage(page, "labels without a pair");
  await fetch(`${empty.url}/v1/collections/first`, { method: "DELETE" });
});

test("files are imported: what became of them, and the rejected lines as a file", { skip }, async () => {
  assert.equal((await fetch(`${open.url}/v1/collections/imported`, json("PUT", { threshold: 0.6 }))).status, 201);
  const page = await openConsole(browser, open.url, { acceptDownloads: true }, "#/collections/imported");
  const letter = droppedFiles().find((it) => it.name === "letter.docx");
  await page.setInputFiles("input[type=file]", [file("rows.jsonl", sampleRows()), letter, file("table.csv", "id,text\n1,a\n")]);
  await page.waitForSelector("text=3 lines or files were rejected");
  await page.waitForSelector("li:has-text('not valid JSON, or without a field (')");
  const said = await page.textContent("section:has-text('Import documents') [role=status]");
  const [kept, duplicates] = said.match(/\d+/g).map(Number);
  // The totals are those of the command on the same rows, and of the list above.
  place.write("in.jsonl", `${sampleRows()}`);
  const summary = JSON.parse(place.run("dedup", "in.jsonl", "--threshold", "0.6", "--dry-run", "--json"));
  assert.deepEqual([kept - 1, duplicates], [summary.kept, summary.removed]);
  await page.waitForFunction((rows) => document.querySelector("dl.facts").textContent.includes(String(rows)), kept + duplicates);
  assert.deepEqual(await statsOf("imported").then((it) => [it.kept, it.rows]), [kept, kept + duplicates]);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save the rejected lines")]);
  const rejected = readFileSync(await download.path(), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(rejected.map((it) => [it.file, it.code]).sort(), [["rows.jsonl", "bad_document"], ["rows.jsonl", "bad_json"], ["table.csv", "kind"]]);
  assert.equal(rejected.find((it) => it.code === "bad_json").row, "this is no JSON");
  await checkPage(page, "an import");
  // The same files again are no new documents, and files can be dropped.
  const dropped = await page.evaluateHandle((rows) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([rows], "again.jsonl"));
    return transfer;
  }, sampleRows());
  await page.dispatchEvent(".drop", "drop", { dataTransfer: dropped });
  await page.waitForSelector("text=2 lines or files were rejected");
  assert.equal((await statsOf("imported")).rows, kept + duplicates);
  await page.click("a:has-text('See the clusters')");
  await page.waitForSelector(".graph .member");
  await fetch(`${open.url}/v1/collections/imported`, { method: "DELETE" });
});

test("aliases, recipes and snapshots are managed", { skip }, async () => {
  for (const name of ["first", "second"]) assert.equal((await fetch(`${open.url}/v1/collections/${name}`, json("PUT", {}))).status, 201);
  await fetch(`${open.url}/v1/collections/first/documents`, json("POST", { id: "1", text: "kept in the snapshot" }));
  const aliases = async () => (await (await fetch(`${open.url}/v1/aliases`)).json()).aliases;
  const page = await openConsole(browser, open.url, {}, "#/administration");
  const part = (title) => page.locator(`section:has(h2:text-is('${title}'))`);
  await part("Aliases").locator("input").fill("live");
  await part("Aliases").locator("form select").selectOption("first");
  await page.click("text=Set the alias");
  await page.waitForSelector("td:has-text('live')");
  assert.deepEqual(await aliases(), { live: "first" });
  await page.locator("tr:has-text('live') select").selectOption("second");
  await page.waitForSelector("tr:has-text('live') a:has-text('second')");
  assert.deepEqual(await aliases(), { live: "second" });
  await page.click("tr:has-text('live') button");
  await page.waitForSelector("td:has-text('live')", { state: "detached" });
  assert.deepEqual(await aliases(), {});

  place.write("stop.txt", "the\nof\n");
  place.write("own.toml", place.run("recipe", "words-1", "--set", "filter.stopwords=stop.txt"));
  await part("Uploaded recipes").locator("input[type=file]").setInputFiles([place.file("own.toml"), place.file("stop.txt")]);
  await page.waitForSelector("text=Recipe: own.toml. Its files: stop.txt");
  await page.click('button:text-is("Upload")');
  await page.waitForSelector("td:has-text('own')");
  assert.equal((await fetch(`${open.url}/v1/recipes/own`)).status, 200);
  await checkPage(page, "the administration");
  // A recipe without its file is refused in the words of the service.
  await part("Uploaded recipes").locator("input[type=file]").setInputFiles([place.file("own.toml")]);
  await part("Uploaded recipes").locator("input:not([type])").fill("alone");
  await page.click('button:text-is("Upload")');
  await page.waitForSelector("[role=alert]:has-text('stop.txt')");
  await page.click("tr:has-text('own') button");
  await page.waitForSelector("td:has-text('own')", { state: "detached" });

  await page.goto(`${open.url}/#/collections/first`);
  await page.click("text=Make a snapshot");
  await page.waitForSelector("td:has-text('console-')");
  await fetch(`${open.url}/v1/collections/first`, { method: "DELETE" });
  // The snapshot is still there when its collection is gone.
  await page.goto(`${open.url}/#/administration`);
  await page.click("tr:has-text('first') button:has-text('Restore')");
  await page.locator("tr:has-text('first') input").fill("first-again");
  await page.locator("tr:has-text('first') button.strong").click();
  await page.waitForSelector("h2:text-is('first-again')");
  assert.equal(await page.evaluate(() => location.hash), "#/collections/first-again");
  assert.equal((await statsOf("first-again")).rows, 1);
  await page.goto(`${open.url}/#/administration`);
  await page.click("tr:has-text('console-') button:has-text('Delete')");
  await page.click("text=Delete the snapshot for ever");
  await page.waitForSelector("td:has-text('console-')", { state: "detached" });
  for (const name of ["second", "first-again"]) await fetch(`${open.url}/v1/collections/${name}`, { method: "DELETE" });
});

test("a search finds a cluster that is not loaded yet, and a cluster has as many documents in the list as beside it", { skip }, async () => {
  assert.equal((await fetch(`${open.url}/v1/collections/large`, json("PUT", {}))).status, 201);
  const words = (at) => Array.from({ length: 20 }, (_, word) => `word${(at * 131 + word * 7) % 9973}x${word}`).join(" ");
  const rows = [];
  for (let at = 0; at < 230; at += 1) for (const copy of ["a", "b"]) rows.push(JSON.stringify({ id: `${at}-${copy}`, text: words(at) }));
  // Written last and as large as this, it is on no early page, and its members are on several.
  for (let copy = 0; copy < 150; copy += 1) rows.push(JSON.stringify({ id: `many-${copy}`, text: `a needle among the words ${words(999)}` }));
  await fetch(`${open.url}/v1/collections/large/documents`, lines(rows.join("\n")));
  const page = await openConsole(browser, open.url, {}, "#/clusters/large");
  await page.waitForSelector("text=100 clusters are loaded");
  await page.fill(".search", "needle");
  await page.waitForSelector(".entry:has-text('many-0')");
  await page.waitForSelector("text=1 entry");
  // The list has the newest 100 members at first, and all of them once they are known.
  await page.waitForFunction(() => document.querySelector("#clusters-0 .value").textContent === "150");
  await page.waitForSelector("h2:has-text('150 documents: the kept one and 149 duplicates')");
  await page.fill(".search", "id:229-b");
  await page.waitForSelector(".entry:has-text('229-a')");
  await checkPage(page, "a search over all clusters");
  await fetch(`${open.url}/v1/collections/large`, { method: "DELETE" });
});

test("the overview begins with what the service remembers", { skip }, async () => {
  const insert = (at) => fetch(`${open.url}/v1/collections/news/documents`, json("POST", { id: `remembered-${at}`, text: `a remembered text ${at} that is unlike the other ones in number ${at * 37}` }));
  for (let at = 0; at < 20; at += 1) assert.equal((await insert(at)).status, 200);
  const remembered = async () => {
    const { samples } = await (await fetch(`${open.url}/v1/activity`)).json();
    return samples.length > 2 && samples.reduce((sum, it) => sum + it.kept + it.duplicates, 0) >= 20;
  };
  while (!(await remembered())) await new Promise((resolve) => setTimeout(resolve, 500));
  const page = await openConsole(browser, open.url);
  await page.waitForSelector("path.curve.recall", { state: "attached" });
  assert.match(await page.innerText(".stat >> nth=2"), /^\d[^]*in the last ten minutes/);
  // The overview and the collection have the same totals.
  await page.waitForSelector("tr:has-text('news')");
  const [kept, rows] = await page.locator("tr:has-text('news') td.number").allInnerTexts();
  await page.click("td a:has-text('news') >> nth=0");
  await page.waitForSelector("dl.facts .number");
  assert.deepEqual(await page.locator("dl.facts .number").allInnerTexts(), [kept, rows]);
  const ids = Array.from({ length: 20 }, (_, at) => `remembered-${at}`);
  await fetch(`${open.url}/v1/collections/news/documents/delete`, json("POST", { ids }));
});

test("on a phone both texts keep their headings", { skip }, async () => {
  const page = await openConsole(browser, open.url, { viewport: { width: 390, height: 844 } }, "#/compare/news");
  const text = (word) => Array.from({ length: 40 }, (_, at) => `Line ${at} of the text about ${word}${at}.`).join("\n");
  await page.fill("textarea >> nth=0", text("boats"));
  await page.fill("textarea >> nth=1", text("ships"));
  await page.click("button.strong");
  await page.waitForSelector(".sides del");
  const seen = () => page.locator(".sides > .title").evaluateAll((titles) => titles.map((it) => {
    const box = it.getBoundingClientRect();
    return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && document.elementFromPoint(box.left + 20, (box.top + box.bottom) / 2)?.closest(".title") === it;
  }));
  await page.locator(".sides del >> nth=0").scrollIntoViewIfNeeded();
  assert.deepEqual(await seen(), [true, true]);
  await page.locator(".sides del >> nth=30").scrollIntoViewIfNeeded();
  assert.deepEqual(await seen(), [true, true]);
});
