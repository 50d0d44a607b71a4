import { globSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { basename, dirname, join, posix } from "node:path";

/** Folders by floor, lowest first: each may import from the floors below it. */
const floors: readonly (readonly string[])[] = [
  ["core", "lib"],
  ["receive", "select", "compose", "store", "target", "agent", "sandbox"],
  ["config", "ledger"],
  ["gateway"],
  ["cli", "server"],
  ["."],
];

/** The only files that stand in no folder. */
const doorstep = ["main.ts", "start.ts", "process.ts"];

/** Built-in modules without I/O. */
const pureModules = ["node:crypto", "node:util", "node:buffer"];

/** What a registry of a folder lists: files that export something like this. */
const adapters: Readonly<Record<string, RegExp>> = {
  target: /^export const \w+: Target\b/m,
  agent: /^export const \w+: Agent\b/m,
  "agent/tools": /^export const \w+: Tool\b/m,
  sandbox: /^export const \w+: Sandbox\b/m,
  "receive/signature": /^export const \w+: Scheme\b/m,
  store: /^export (async )?function \w+\([^)]*\): Promise<Store>/m,
  cli: /^export function \w+\(program: Command, context: Context\): void/m,
};

const registryLine = /^export \{ \w+(?: as \w+)? \} from "\.\/([\w-]+\.ts)";$/;

interface Import {
  /** As it is written. */
  readonly specifier: string;
  readonly isType: boolean;
}

interface Source {
  /** Relative to the folder of sources, with slashes. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
}

/** Everything in a folder of sources that is not as the house is built, in sentences. */
export function faultsOf(folder: string): string[] {
  const paths = globSync("**/*", { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.relative(folder, posix.join(entry.parentPath, entry.name)));
  const sources = paths
    .filter((path) => path.endsWith(".ts"))
    .map((path) => readSource(folder, path))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
  const known = new Set(sources.map(({ path }) => path));
  return [
    ...paths.flatMap(placeFaults),
    ...sources.flatMap((source) => importFaults(source, known)),
    ...cycles(sources),
    ...sources.filter(({ path }) => basename(path) === "registry.ts").flatMap((one) => registryFaults(one, sources)),
  ];
}

function readSource(folder: string, path: string): Source {
  const text = readFileSync(join(folder, path), "utf8");
  return { path, text, imports: importsOf(text) };
}

function importsOf(text: string): Import[] {
  const code = text.replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, "");
  const statements = code.matchAll(/^(?:import|export)\s(?<what>[^"'`;]*?)\sfrom\s+["'](?<specifier>[^"']+)["']/gm);
  const bare = code.matchAll(/^import\s+["'](?<specifier>[^"']+)["']/gm);
  const dynamic = code.matchAll(/\bimport\(\s*["'](?<specifier>[^"']+)["']\s*\)/g);
  return [...statements, ...bare, ...dynamic].map(({ groups }) => ({
    specifier: groups?.specifier ?? "",
    isType: isTypeOnly(groups?.what ?? ""),
  }));
}

function isTypeOnly(what: string): boolean {
  if (/^type\b/.test(what)) return true;
  const names = /^\{(.*)\}$/s.exec(what.trim())?.[1]?.split(",") ?? [""];
  return names.filter((name) => name.trim() !== "").length > 0 && names.every((name) => /^\s*(type\s|$)/.test(name));
}

/** The room a file is in; `.` for those that stand in none. */
function roomOf(path: string): string {
  return path.split("/", 1)[0] === path ? "." : path.split("/", 1)[0]!;
}

function floorOf(path: string): number {
  return floors.findIndex((rooms) => rooms.includes(roomOf(path)));
}

function placeFaults(path: string): string[] {
  const faults: string[] = [];
  if (floorOf(path) === -1) faults.push(`${path}: the house has no room "${roomOf(path)}"`);
  if (roomOf(path) === "." && !doorstep.includes(path)) faults.push(`${path}: it must stand in a room`);
  if (basename(path) === "index.ts") faults.push(`${path}: no file is named index.ts`);
  return faults;
}

function importFaults(source: Source, known: ReadonlySet<string>): string[] {
  return source.imports.flatMap((one) => {
    const why = one.specifier.startsWith(".") ? whyNot(source.path, one, known) : whyNotModule(source.path, one);
    return why === undefined ? [] : [`${source.path} imports "${one.specifier}": ${why}`];
  });
}

function targetOf(path: string, specifier: string): string {
  return posix.normalize(posix.join(dirname(path), specifier));
}

function whyNot(path: string, { specifier, isType }: Import, known: ReadonlySet<string>): string | undefined {
  const target = targetOf(path, specifier);
  if (!known.has(target)) return "there is no such file";
  const [here, there] = [roomOf(path), roomOf(target)];
  if (here === there) return undefined;
  if (here === "core") return "core imports nothing but core";
  if (here === "lib" && there === "core") return undefined;
  if (here === "agent" && target === "sandbox/sandbox.ts" && isType) return undefined;
  if (floorOf(target) === floorOf(path)) return "rooms of one floor do not import each other";
  return floorOf(target) > floorOf(path) ? "nothing imports upward" : undefined;
}

function whyNotModule(path: string, { specifier }: Import): string | undefined {
  if (!specifier.startsWith("node:") && builtinModules.includes(specifier))
    return 'a built-in module is named with "node:"';
  if (roomOf(path) !== "core" || pureModules.includes(specifier)) return undefined;
  return "core does no I/O and needs no package";
}

/** Every way of imports that leads back to where it began, once. */
function cycles(sources: readonly Source[]): string[] {
  const targets = new Map(
    sources.map(({ path, imports }) => [
      path,
      imports.filter(({ specifier }) => specifier.startsWith(".")).map(({ specifier }) => targetOf(path, specifier)),
    ]),
  );
  const faults: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): void => {
    const at = way.indexOf(path);
    if (at >= 0) faults.push(`a cycle of imports: ${[...way.slice(at), path].join(" > ")}`);
    if (at >= 0 || done.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...way, path]);
    done.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return faults;
}

function registryFaults({ path, text }: Source, sources: readonly Source[]): string[] {
  const folder = dirname(path);
  const adapter = adapters[folder];
  if (!adapter) return [`${path}: what this registry lists is not known; say so in the test`];
  const lines = text.split("\n").filter((line) => line !== "");
  const listed = lines.map((line) => registryLine.exec(line)?.[1]);
  const files = sources.filter((source) => dirname(source.path) === folder && adapter.test(source.text));
  const names = files.map((file) => basename(file.path));
  return [
    ...lines
      .filter((_, index) => listed[index] === undefined)
      .map((line) => `${path}: "${line}" is no line of a registry`),
    ...names.filter((name) => !listed.includes(name)).map((name) => `${path}: "${name}" is not listed`),
    ...listed.filter((name) => name && !names.includes(name)).map((name) => `${path}: "${name}" exports no adapter`),
  ];
}
