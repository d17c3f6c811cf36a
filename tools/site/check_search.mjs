// Checks that the search of a built site finds English and Chinese words: `node check_search.mjs SITE`.
//
// Each query is typed into the search of a page in Chromium, as a reader does it. Chinese queries are whole words inside
// sentences, without blanks around them, which an index that splits at blanks does not find.
import { createServer } from "node:http";
import { createReadStream, existsSync, statSync } from "node:fs";
import { extname, join, normalize } from "node:path";
import { createRequire } from "node:module";

const require = createRequire(new URL("../../console/package.json", import.meta.url));
const { chromium } = require("playwright-core");

const QUERIES = [
  ["/", "pigeonhole", "How it works"],
  ["/", "threshold", "Tune a threshold"],
  ["/", "datatrove", "Coming from another tool"],
  ["/zh/", "近似重复", "近似重复"],
  ["/zh/", "海明距离", "海明距离"],
  ["/zh/", "抽屉原理", "原理"],
  ["/zh/", "鸽巢原理", "原理"],
  ["/zh/", "阈值", "阈值"],
  ["/zh/", "洗稿", "查抄袭"],
  ["/zh/", "降维", "SimHash"],
  ["/zh/", "覆盖键", "术语表"],
];
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml" };

const site = process.argv[2];
const server = createServer((request, response) => {
  let file = normalize(join(site, decodeURIComponent(new URL(request.url, "http://localhost").pathname)));
  if (existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
  if (!existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
  createReadStream(file).pipe(response);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${server.address().port}`;

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
const failed = [];
for (const [path, query, expected] of QUERIES) {
  await page.goto(address + path);
  await page.keyboard.press("/");
  // The search is in a shadow tree, which locators look into.
  const input = page.locator("input[type=text]:visible, input:not([type]):visible, input[type=search]:visible").first();
  await input.fill(query, { timeout: 60_000 });
  const found = page.locator("ol li, [role=option], a").filter({ hasText: expected }).filter({ hasText: query });
  try {
    await found.first().waitFor({ timeout: 60_000 });
    console.log(`${query}: found`);
  } catch {
    failed.push(query);
  }
}
await browser.close();
server.close();
if (failed.length > 0) {
  console.error(`the search does not find ${failed.join(", ")}`);
  process.exitCode = 1;
}
