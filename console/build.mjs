// Builds the pages into the crates that contain them, because a crate that is published has only its own files. Each page is one HTML file with its script and its style in it. The policy of a page
// (CSP) allows these two by their hashes and nothing else, so a page opens no connection and runs no other script.
//
// The same sources give the same bytes: versions are pinned in package-lock.json, and nothing of the machine goes in.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "vite";

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

/** Returns the script and the style of an entry. */
async function bundle(entry) {
  const { output } = [
    await build({
      configFile: false,
      logLevel: "warn",
      define: { "process.env.NODE_ENV": '"production"' },
      build: {
        write: false,
        target: "es2022",
        // Browsers from which on light-dark() is known.
        cssTarget: ["chrome123", "firefox120", "safari17.5"],
        cssCodeSplit: false,
        modulePreload: false,
        rollupOptions: { input: entry, output: { format: "iife", entryFileNames: "page.js" } },
      },
    }),
  ].flat()[0];
  const script = output.find((it) => it.type === "chunk").code.trim();
  const style = String(output.find((it) => it.fileName.endsWith(".css"))?.source ?? "").trim();
  if (/<\/script|<!--/i.test(script)) throw new Error("the script would end its element");
  return { script, style };
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
