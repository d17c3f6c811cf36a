// Takes pictures of every section of a page: node tests/browser/pictures.mjs REPORT.html|http://HOST FOLDER
// A page from disk, or the console of a running service.
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch, openPage, openSections } from "./support.mjs";

const [place, folder] = process.argv.slice(2);
const isService = place.startsWith("http");
const url = isService ? place : pathToFileURL(resolve(place)).href;
mkdirSync(folder, { recursive: true });
const browser = await launch();
for (const [width, height] of [[1440, 900], [390, 844]]) {
  for (const colorScheme of ["light", "dark"]) {
    for (const locale of ["en-GB", "zh-CN"]) {
      const page = await openPage(browser, url, { colorScheme, locale, viewport: { width, height } });
      const tabs = await page.locator("[role=tab]").evaluateAll((found) => found.map((it) => it.id.replace("tab-", "")));
      for (const section of tabs.length > 0 ? tabs : ["page"]) {
        if (tabs.length > 0) await page.click(`#tab-${section}`);
        else for (const details of await page.$$("details > summary")) await details.click();
        if (isService) await openSections[section]?.(page);
        await page.evaluate(() => window.scrollTo(0, 0));
        const name = `${section}-${width}-${colorScheme}-${locale.slice(0, 2)}.png`;
        await page.screenshot({ path: resolve(folder, name), fullPage: true });
      }
      await page.context().close();
    }
  }
}
await browser.close();
