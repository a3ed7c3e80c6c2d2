// Checks what a browser loads first against its limit, and writes a gzip copy beside each file that it makes smaller.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const folder = new URL("../../src/noetl/server/static", import.meta.url).pathname;
const limits = { ".js": 350_000, ".css": 20_000 };

const files = readdirSync(folder, { recursive: true }).filter((one) => statSync(join(folder, one)).isFile());
const sizes = new Map();
for (const name of files.filter((one) => /\.(js|css|html|svg)$/.test(one))) {
  const content = readFileSync(join(folder, name));
  const zipped = gzipSync(content, { level: 9 });
  sizes.set(`/${name}`, zipped.length);
  if (zipped.length < content.length) writeFileSync(join(folder, `${name}.gz`), zipped);
}

const page = readFileSync(join(folder, "index.html"), "utf8");
const first = [...page.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/g)].map((found) => found[1]);
for (const [end, limit] of Object.entries(limits)) {
  const bytes = first.filter((one) => one.endsWith(end)).reduce((sum, one) => sum + (sizes.get(one) ?? 0), 0);
  console.log(`first ${end}: ${(bytes / 1000).toFixed(1)} kB of ${limit / 1000} kB, gzip`);
  if (bytes > limit) {
    console.error(`The first ${end} files are too large. Load what the first screen does not need with import().`);
    process.exit(1);
  }
}
