import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { blocksOf, pages } from "./blocks.ts";

const root = new URL("../../", import.meta.url);
const written = ["README.md", "CONTRIBUTING.md", ...readdirSync(new URL("docs/", root)).map((name) => `docs/${name}`)];

function textOf(page: string): string {
  return readFileSync(new URL(page, root), "utf8");
}

/** The anchor that GitHub makes of a heading. */
function anchorOf(heading: string): string {
  const words = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "");
  return words.trim().replaceAll(" ", "-");
}

function anchorsOf(page: string): string[] {
  const text = textOf(page).replaceAll(/^```[\s\S]*?^```$/gm, "");
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading!));
}

for (const page of written) {
  test(`the links of ${page} lead somewhere`, () => {
    const links = [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!);
    const dead = links.filter((link) => !/^https:/.test(link) && !isAlive(page, link));
    assert.deepEqual(dead, []);
  });
}

function isAlive(page: string, link: string): boolean {
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? page : new URL(path, new URL(page, "file:///")).pathname.slice(1);
  if (!existsSync(new URL(target, root))) return false;
  return anchor === undefined || anchorsOf(target).includes(anchor);
}

test("the README is no longer than a hundred lines", () => {
  assert.ok(textOf(pages.readme).trimEnd().split("\n").length <= 100);
});

for (const page of [pages.events, pages.promises, pages.machines]) {
  test(`${page} has no block that only looks as if a test read it`, () => {
    const unknown = blocksOf(page).filter(({ kind }) => !["", "config", "session", "setup"].includes(kind));
    assert.deepEqual(unknown, []);
    const unread = blocksOf(page).filter(({ language, kind }) => language === "console" && kind !== "session");
    assert.deepEqual(unread, []);
  });
}
