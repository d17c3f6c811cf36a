// Builds the page that does the work in the browser: target/web/index.html with its script, its style and the engine as a
// WebAssembly module in it, and beside it jieba's dictionary, which the page fetches when a recipe needs it. Unlike the
// pages of build.mjs it is not checked in, because a module depends on the compiler.
//
// `node build-web.mjs` compiles the module. `node build-web.mjs FILE.wasm` takes a compiled one. The variable WEB_PROFILE
// names another profile of Cargo than that of a release, whose optimisation across all crates takes minutes.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { bundle } from "./bundle.mjs";

const root = resolve(import.meta.dirname, "..");
const target = join(root, "target/web");
/** Largest size of the page in bytes, compressed with gzip, as every server sends it: all that a first visit loads. */
const maxBytes = 3_000_000;
/** Profile of Cargo. Sizes are those of a release. */
const profile = process.env.WEB_PROFILE ?? "web-release";

/** Headers of the C library for WebAssembly, for the C code of zstd and xz: those of Debian's package `wasi-libc`. */
const headers = process.env.WASI_HEADERS ?? "/usr/include/wasm32-wasi";

/** Flags of the compiler: instructions that work on 16 bytes at a time, which all browsers have since 2023, and a stack as large as that of other programs. */
const flags = "-Ctarget-feature=+simd128 -Clink-arg=-zstack-size=8388608";

/** Compiles the module. */
function compileModule() {
  const options = ["build", "--locked", "--profile", profile, "--target", "wasm32-wasip1", "-p", "lookalike-web"];
  const environment = { CFLAGS_wasm32_wasip1: `-isystem ${headers}`, CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS: flags };
  execFileSync("cargo", options, { cwd: root, stdio: "inherit", env: { ...environment, ...process.env } });
  return join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), `wasm32-wasip1/${profile}/lookalike-web.wasm`);
}

/** Returns jieba's dictionary, which is a file of the pinned crate. */
function readDictionary() {
  const options = ["metadata", "--format-version", "1", "--locked", "--filter-platform", "wasm32-wasip1"];
  const { packages } = JSON.parse(execFileSync("cargo", options, { cwd: root, maxBuffer: 1 << 28 }));
  const { manifest_path: manifest } = packages.find(({ name }) => name === "jieba-rs");
  return readFileSync(join(dirname(manifest), "src/data/dict.txt"));
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Returns the hashes by which the policy of the report allows its script and its style, because a report that is shown inside the page has the policy of the page, too. */
function readReportHashes() {
  const report = readFileSync(join(root, "crates/lookalike-batch/pages/report.html"), "utf8");
  return Object.fromEntries(["script-src", "style-src"].map((name) => [name, new RegExp(`${name} ('sha256-[^']+')`).exec(report)[1]]));
}
const report = readReportHashes();

const worker = (await bundle("src/web/worker.ts")).script;
const { script, style } = await bundle("src/web/main.tsx", { WORKER_SCRIPT: JSON.stringify(worker) });
const policy = [
  "default-src 'none'",
  // The worker runs under the policy of the page, too.
  `script-src ${hash(script)} ${report["script-src"]} 'wasm-unsafe-eval'`,
  "worker-src blob:",
  // For reports.
  "frame-src blob:",
  `style-src ${hash(style)} ${report["style-src"]}`,
  // For the dictionary, which lies beside the page.
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
const module = readFileSync(process.argv[2] ?? compileModule());
const compress = (bytes) => gzipSync(bytes, { level: 9 });

/**
 * Returns the module in the format of `src/web/lzma.ts`: the code of WebAssembly has no alignment that `pb` could use, and the
 * window holds all of it. The header states the size, which `xz` leaves open.
 */
function packModule(bytes) {
  const options = ["--format=lzma", "--lzma1=preset=9e,dict=32MiB,pb=0", "--stdout"];
  const packed = execFileSync("xz", options, { input: bytes, maxBuffer: 1 << 28 });
  packed.writeBigUInt64LE(BigInt(bytes.length), 5);
  return packed;
}

const html = readFileSync("src/web/page.html", "utf8")
  .replace("{{policy}}", () => policy)
  .replace("{{style}}", () => style)
  .replace("{{script}}", () => script)
  .replace("{{module}}", () => packModule(module).toString("base64"));
mkdirSync(target, { recursive: true });
writeFileSync(join(target, "index.html"), html);
writeFileSync(join(target, "jieba-dictionary.bin"), compress(readDictionary()));
const sent = { gzip: gzipSync(html).length, brotli: brotliCompressSync(html).length };
console.log(`target/web/index.html: ${html.length} bytes, compressed ${sent.gzip} (gzip) or ${sent.brotli} (brotli); its module has ${module.length} bytes`);
if (profile === "web-release" && sent.gzip > maxBytes) {
  console.error(`the page has ${sent.gzip} bytes compressed, and at most ${maxBytes} are allowed`);
  process.exitCode = 1;
}
