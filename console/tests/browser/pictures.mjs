// Takes pictures of every section of a report: node tests/browser/pictures.mjs REPORT.html FOLDER
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch, openPage } from "./support.mjs";

const [report, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await launch();
for (const [width, height] of [[1440, 900], [390, 844]]) {
  for (const colorScheme of ["light", "dark"]) {
    for (const locale of ["en-GB", "zh-CN"]) {
      const page = await openPage(browser, pathToFileURL(resolve(report)).href, { colorScheme, locale, viewport: { width, height } });
      for (const section of ["overview", "review", "clusters", "run"]) {
        const tab = page.locator(`#tab-${section}`);
        if ((await tab.count()) === 0) continue;
        await tab.click();
        const name = `${section}-${width}-${colorScheme}-${locale.slice(0, 2)}.png`;
        await page.screenshot({ path: resolve(folder, name), fullPage: true });
      }
      await page.context().close();
    }
  }
}
await browser.close();
