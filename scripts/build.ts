// Makes dist/: the package that is published. Built JavaScript, because Node does not strip types under node_modules, and a
// manifest of its own, without the private root's Node binaries and tools. Try it with: npm run build && npm pack ./dist
import { execFileSync } from "node:child_process";
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
const dist = join(root, "dist");

rmSync(dist, { recursive: true, force: true });
execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
for (const file of globSync("src/**/*.sql", { cwd: root })) cpSync(join(root, file), join(dist, file));
for (const name of ["bin", "samples", "docs", "README.md", "LICENSE"])
  cpSync(join(root, name), join(dist, name), { recursive: true });

const { name, version, description, license, type, bin, dependencies } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
) as Record<string, unknown>;
const manifest = { name, version, description, license, type, bin, engines: { node: ">=24.15" }, dependencies };
writeFileSync(join(dist, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
console.log(`Built ${name} ${version} in dist/`);
