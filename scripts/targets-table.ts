import { isThread } from "../src/target/address.ts";
import * as targets from "../src/target/registry.ts";
import type { AddressField, Pace, Setting, Target } from "../src/target/target.ts";
import { code, markdownTable } from "./markdown.ts";

/** Where the page is whose table is made here; the rest of it is written by hand. */
export const targetsPagePath: URL = new URL("../docs/targets.md", import.meta.url);

const begin = '<!-- The table is made by "npm run docs" from the targets\' own data. A test compares it. -->\n';
const end = "<!-- The end of the table. -->\n";

const all: readonly Target[] = Object.values(targets);

/** The page with the table as it must be. */
export function withTable(page: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error("docs/targets.md has lost the marks around its table");
  return `${page.slice(0, from)}${begin}\n${table()}\n${page.slice(to)}`;
}

const head = [
  ...[
    "Target",
    "Credentials",
    "Address",
    "Thread",
    "Length and pace",
    "Markup",
    "Sent twice",
    "Tried again",
    "Switches",
  ],
];

function table(): string {
  return markdownTable(head, all.map(rowOf));
}

function rowOf(target: Target): string[] {
  const { name, neutralName, markup, repeats, retried } = target;
  return [
    `[${code(name)}](#${name})${neutralName === undefined ? "" : `<br>${code(neutralName)}`}`,
    credentials(target),
    fields(target, (key, field) => !isThreads(key, field) && key !== "format"),
    fields(target, isThreads),
    lengthAndPace(target),
    markup,
    repeatWords[repeats],
    retried,
    switches(target),
  ];
}

/** What becomes of a message that is sent twice, in the words of the docs. */
export const repeatWords: Readonly<Record<Target["repeats"], string>> = {
  recognised: "kept once",
  findable: "looked for first",
  doubled: "shown twice",
};

/** Settings that it cannot be used without, by ways in; then the secrets that may be needed. */
function credentials({ settings, ways = [] }: Target): string {
  const label = (key: string) => code(settings[key]?.env?.[0] ?? key);
  const inWays = ways.flat();
  const others = Object.entries(settings).filter(([key]) => !inWays.includes(key));
  const needed = others.filter(([, { required }]) => required).map(([key]) => label(key));
  const optional = others.filter(([, one]) => isSecret(one) && !one.required).map(([key]) => `(${label(key)})`);
  const byWay = ways.map((way) => way.map(label).join(" + ")).join("<br>or ");
  return [...needed, byWay, ...optional].filter((part) => part !== "").join("<br>") || "none";
}

function isSecret({ kind }: Setting): boolean {
  return kind === "secret" || kind === "secret_url";
}

/** What the field `thread_id` of any target would do, and what stands beside it. */
function isThreads(key: string, field: AddressField): boolean {
  return isThread(key, field) || /^(?:thread_|discussion_|in_reply_to$)/.test(key);
}

function fields({ address }: Target, belongs: (key: string, field: AddressField) => boolean): string {
  const some = Object.entries(address).filter(([key, field]) => belongs(key, field));
  return some.map(([key, field]) => `${code(key)}${mark(field)}`).join(", ");
}

function mark({ required, homeChannel }: AddressField): string {
  return homeChannel ? " (or home)" : required ? " (needed)" : "";
}

const units: Readonly<Record<Target["limit"]["unit"], string>> = {
  ...{ utf16: "UTF-16 units", codepoints: "characters", bytes: "bytes", segments: "SMS segments" },
};

function lengthAndPace({ limit, pace, boundedBy, settings }: Target): string {
  const parts = limit.parts === 1 ? "1 part" : `${limit.parts} parts`;
  const places = pace?.perPlace ? [`${often(pace.perPlace)} in each ${code(pace.perPlace.field)}`] : [];
  const most = limit.max.toLocaleString("en-US");
  const usual = boundedBy === undefined ? most : (settings[boundedBy]?.default ?? most);
  const bound = boundedBy === undefined ? "" : ` (${code(boundedBy)}, at most ${most})`;
  const length = `${usual} ${units[limit.unit]}${bound}, ${parts}`;
  return [length, ...(pace?.overall ? [often(pace.overall)] : []), ...places].join("<br>");
}

function often({ count, everyMs }: Pace): string {
  const names = new Map([
    [1_000, "a second"],
    [60_000, "a minute"],
    [3_600_000, "an hour"],
  ]);
  return `${count} ${names.get(everyMs) ?? `in ${everyMs / 1_000} seconds`}`;
}

/** What somebody may choose, with what it is when nobody does. */
function switches({ settings, address }: Target): string {
  const chosen = Object.entries(settings).filter(([, { kind }]) => kind === "boolean" || kind === "choice");
  const own = chosen.map(([key, { default: preset }]) => code(`${key}: ${preset ?? "(not set)"}`));
  return [...own, ...("format" in address ? [code("format")] : [])].join("<br>");
}
