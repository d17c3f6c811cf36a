// Parts of the report that need no browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createServer } from "vite";

let server;
const load = (path) => server.ssrLoadModule(`/src/${path}`);
before(async () => {
  server = await createServer({ configFile: false, logLevel: "error", server: { middlewareMode: true, ws: false }, appType: "custom" });
});
after(() => server.close());

const placeholders = (message) => {
  const patterns = typeof message === "string" ? [message] : Object.values(message);
  return new Set(patterns.flatMap((it) => [...it.matchAll(/\{(\w+)\}/g)].map((found) => found[1])));
};

test("both languages have every message, with the same placeholders", async () => {
  const { catalogs } = await load("language/catalog.ts");
  assert.deepEqual(Object.keys(catalogs.zh).sort(), Object.keys(catalogs.en).sort());
  for (const key of Object.keys(catalogs.en)) {
    assert.deepEqual(placeholders(catalogs.zh[key]), placeholders(catalogs.en[key]), key);
    for (const language of ["en", "zh"]) {
      const patterns = Object.values(typeof catalogs[language][key] === "string" ? [catalogs[language][key]] : catalogs[language][key]);
      assert.ok(patterns.every((it) => it.trim() !== ""), `${language} ${key}`);
    }
  }
});

test("every message is Chinese where it has words", async () => {
  const { catalogs } = await load("language/catalog.ts");
  const same = Object.keys(catalogs.en).filter((key) => JSON.stringify(catalogs.en[key]) === JSON.stringify(catalogs.zh[key]));
  // Terms of the search language and names of algorithms are the same in both.
  assert.deepEqual(same.filter((key) => !key.startsWith("figure.")), ["list.searchHint", "passages.searchHint"]);
});

test("singular, plural, numbers and units are written", async () => {
  const { Wording } = await load("language/catalog.ts");
  const [en, zh] = [new Wording("en"), new Wording("zh")];
  assert.equal(en.text("list.count", { n: 1 }), "1 entry");
  assert.equal(en.text("list.count", { n: 12345 }), "12,345 entries");
  assert.equal(zh.text("list.count", { n: 12345 }), "12,345 项");
  assert.equal(en.similarity(0.99999), "0.999990");
  assert.equal(en.similarity(0.75), "0.750");
  assert.equal(en.similarity(1), "1");
  assert.equal(en.bytes(1_500_000), "1.5\u00a0MB");
  assert.equal(en.bytes(999_999), "1.0\u00a0MB");
  assert.equal(en.share(0.9999), "99.99\u00a0%");
  assert.equal(en.share(0.012), "1.2\u00a0%");
});

test("searches are parsed", async () => {
  const { parseQuery, parseNumberTest, isBadTerm } = await load("report/query.ts");
  const query = parseQuery('similarity:>0.9 cluster:>=10 text:"two words" ID：ＡＢ plain marked:no');
  assert.ok(!isBadTerm(query));
  assert.deepEqual([query.text, query.id, query.words, query.marked], [["two words"], ["ab"], ["plain"], ["no"]]);
  assert.deepEqual([0.9, 0.91].map((it) => query.similarity[0](it)), [false, true]);
  assert.deepEqual([9, 10].map((it) => query.cluster[0](it)), [false, true]);
  assert.deepEqual([0.79, 0.8, 0.85, 0.86].map(parseNumberTest("0.8..0.85")), [false, true, true, false]);
  assert.equal(parseNumberTest("=> 3"), null);
  assert.deepEqual(parseQuery("similarity:high"), { term: "similarity:high", help: "list.helpNumber" });
  assert.deepEqual(parseQuery("marked:maybe"), { term: "marked:maybe", help: "list.helpMarked" });
});

test("sizes of clusters are grouped", async () => {
  const { groupSizes } = await load("report/overview.tsx");
  const groups = groupSizes([[2, 5], [3, 1], [4, 1], [5, 1], [8, 1], [9, 2]]);
  assert.deepEqual(groups, [
    { from: 2, to: 2, clusters: 5 },
    { from: 3, to: 4, clusters: 2 },
    { from: 5, to: 8, clusters: 2 },
    { from: 9, to: 16, clusters: 2 },
  ]);
});

test("lines of two texts stay beside each other", async () => {
  const { splitLines } = await load("components/side-by-side.tsx");
  const lines = splitLines("a\nb\nc", "a\nx\ny\nc", [0, 2, 2, 2, 1, 0, 3, 0, 3, 0, 2, 2]);
  assert.deepEqual(lines, [
    { left: [{ kind: 0, text: "a" }], right: [{ kind: 0, text: "a" }] },
    { left: [{ kind: 2, text: "b" }], right: [{ kind: 3, text: "x\ny" }] },
    { left: [{ kind: 0, text: "c" }], right: [{ kind: 0, text: "c" }] },
  ]);
});
