// Takes pictures of every section of a page from disk: node tests/browser/pictures.mjs REPORT.html FOLDER
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
      const tabs = await page.locator("[role=tab]").evaluateAll((found) => found.map((it) => it.id.replace("tab-", "")));
      for (const section of tabs.length > 0 ? tabs : ["page"]) {
        if (tabs.length > 0) await page.click(`#tab-${section}`);
        else for (const details of await page.$$("details > summary")) await details.click();
        await page.evaluate(() => window.scrollTo(0, 0));
        const name = `${section}-${width}-${colorScheme}-${locale.slice(0, 2)}.png`;
        await page.screenshot({ path: resolve(folder, name), fullPage: true });
      }
      await page.context().close();
    }
  }
}
await browser.close();
