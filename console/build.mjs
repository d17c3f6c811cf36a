// Builds the pages into the crates that contain them, because a crate that is published has only its own files. Each page is one HTML file with its script and its style in it. The policy of a page
// (CSP) allows these two by their hashes and nothing else, so a page opens no connection and runs no other script.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { bundle } from "./bundle.mjs";

const pages = [
  { name: "report", entry: "src/report/main.tsx", into: "../crates/lookalike-batch/pages", data: "__LOOKALIKE_DATA__" },
  // The console asks its own service, and nothing else.
  { name: "console", entry: "src/console/main.tsx", into: "../crates/lookalike-server/pages", connects: "connect-src 'self'" },
];
/** Largest size of all pages together, compressed. */
const maxBytes = 180_000;

let total = 0;
for (const page of pages) {
  const { script, style } = await bundle(page.entry);
  const { html, policy } = compose(page, script, style);
  mkdirSync(page.into, { recursive: true });
  if (page.connects) writeFileSync(`${page.into}/${page.name}.policy`, `${policy}; frame-ancestors 'none'`);
  total += gzipSync(html).length;
  writeFileSync(`${page.into}/${page.name}.html`, html);
  console.log(`${page.into}/${page.name}.html: ${html.length} bytes, ${gzipSync(html).length} compressed`);
}
if (total > maxBytes) {
  console.error(`the pages have ${total} bytes compressed, and at most ${maxBytes} are allowed`);
  process.exitCode = 1;
}

function compose({ name, data, connects }, script, style) {
  const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
    connects,
  ]
    .filter(Boolean)
    .join("; ");
  const html = readFileSync(`src/${name}/page.html`, "utf8")
    .replace("{{policy}}", () => policy)
    .replace("{{style}}", () => style)
    .replace("{{data}}", () => data ?? "")
    .replace("{{script}}", () => script);
  return { html, policy };
}
