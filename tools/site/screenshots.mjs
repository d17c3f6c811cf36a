// Takes the pictures of a report: `node screenshots.mjs PROGRAM` writes four PNG files to docs/images/.
//
// The report is that of examples/news.jsonl: its overview (overview-*.png), and the removal that is nearest to the threshold
// beside the kept document (report-*.png). It needs Chromium and the packages of console/ (`npm ci` there).
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { chromium } = createRequire(join(root, "console/package.json"))("playwright-core");

const program = resolve(process.argv[2]);
const place = mkdtempSync(join(tmpdir(), "report-"));
cpSync(join(root, "examples"), join(place, "examples"), { recursive: true });

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const language of ["en", "zh"]) {
  const report = `report-${language}.html`;
  execFileSync(program, ["dedup", "examples/news.jsonl", "--report", report, "--lang", language, "--quiet"], { cwd: place });
  const page = await browser.newPage({ viewport: { width: 1000, height: 620 }, locale: language === "zh" ? "zh-CN" : "en-US", colorScheme: "light" });
  await page.goto(pathToFileURL(join(place, report)).href);
  await page.waitForTimeout(800);
  await page.screenshot({ path: join(root, `docs/images/overview-${language}.png`) });
  await page.getByText(language === "zh" ? "核对" : "Review", { exact: true }).first().click();
  await page.waitForTimeout(800);
  await page.screenshot({ path: join(root, `docs/images/report-${language}.png`) });
  await page.close();
}
await browser.close();
