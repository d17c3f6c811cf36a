// Parts of the page in the browser that need neither a browser nor the module.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { createServer } from "vite";

let server;
const load = (path) => server.ssrLoadModule(`/src/web/${path}`);
before(async () => {
  server = await createServer({ configFile: false, logLevel: "error", server: { middlewareMode: true, ws: false }, appType: "custom" });
});
after(() => server.close());

const patternsOf = (message) => (typeof message === "string" ? [message] : Object.values(message));
const placeholders = (message) => new Set(patternsOf(message).flatMap((pattern) => [...pattern.matchAll(/\{(\w+)\}/g)].map((found) => found[1])));

test("both languages have every message of the page, with the same placeholders", async () => {
  const { webMessages } = await load("messages.ts");
  assert.deepEqual(Object.keys(webMessages.zh).sort(), Object.keys(webMessages.en).sort());
  for (const [key, english] of Object.entries(webMessages.en)) {
    assert.deepEqual(placeholders(webMessages.zh[key]), placeholders(english), key);
  }
  const same = Object.keys(webMessages.en).filter((key) => JSON.stringify(webMessages.en[key]) === JSON.stringify(webMessages.zh[key]));
  // A word of the field that Chinese articles have in English, too.
  assert.deepEqual(same, ["web.shingle"]);
});

test("every message of the page is used", async () => {
  const folder = new URL("../../src/web/", import.meta.url);
  const sources = readdirSync(folder).filter((name) => name.endsWith(".tsx")).map((name) => readFileSync(new URL(name, folder), "utf8")).join("\n");
  const { webMessages } = await load("messages.ts");
  // Names of sections and of numbers are put together.
  const joined = ["web.learn", "web.compare", "web.bands", "web.rows"];
  const unused = Object.keys(webMessages.en).filter((key) => !joined.includes(key) && !sources.includes(`"${key}"`));
  assert.deepEqual(unused, []);
});

test("messages of the page do not hide those of all pages", async () => {
  const { catalogs } = await server.ssrLoadModule("/src/language/catalog.ts");
  const { webMessages, addWebMessages, sayWeb } = await load("messages.ts");
  assert.deepEqual(Object.keys(webMessages.en).filter((key) => key in catalogs.en), []);
  addWebMessages();
  const { Wording } = await server.ssrLoadModule("/src/language/catalog.ts");
  assert.equal(sayWeb(new Wording("en"), "web.differ", { n: 1, of: 64 }), "1 of 64 bits differs");
  assert.equal(sayWeb(new Wording("zh"), "web.differ", { n: 3, of: 64 }), "64 位中有 3 位不同");
});

/** A program of a few instructions: it ends with a code, or reaches what cannot be reached. */
function makeProgram(body) {
  const text = (name) => [name.length, ...Buffer.from(name)];
  const section = (number, ...content) => [number, content.length, ...content];
  return new WebAssembly.Module(
    new Uint8Array([
      0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
      // Types: one number to nothing, nothing to nothing.
      ...section(1, 2, 0x60, 1, 0x7f, 0, 0x60, 0, 0),
      ...section(2, 1, ...text("wasi_snapshot_preview1"), ...text("proc_exit"), 0, 0),
      ...section(3, 1, 1),
      ...section(5, 1, 0, 1),
      ...section(7, 2, ...text("memory"), 2, 0, ...text("_start"), 0, 1),
      ...section(10, 1, body.length + 2, 0, ...body, 0x0b),
    ]),
  );
}

test("a program ends with its code, and a trap is an error", async () => {
  const { runProgram } = await load("wasi.ts");
  const none = new Uint8Array();
  // i32.const 2, call 0
  assert.deepEqual(await runProgram(makeProgram([0x41, 2, 0x10, 0]), none), { code: 2, output: none, messages: "" });
  assert.equal((await runProgram(makeProgram([]), none)).code, 0);
  await assert.rejects(runProgram(makeProgram([0x00]), none), WebAssembly.RuntimeError);
});
