// Bundles the script and the style of a page. The same sources give the same bytes: versions are pinned in
// package-lock.json, and nothing of the machine goes in.
import { build } from "vite";

/** Returns the script and the style of an entry. `define` are constants that the script contains. */
export async function bundle(entry, define = {}) {
  const { output } = [
    await build({
      configFile: false,
      logLevel: "warn",
      define: { "process.env.NODE_ENV": '"production"', ...define },
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
