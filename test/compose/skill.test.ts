import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { findSkill } from "../../src/compose/skill.ts";

const top = await mkdtemp(join(tmpdir(), "postern-skill-"));
after(() => rm(top, { recursive: true }));

let count = 0;

/** A skills folder of its own with these files. */
async function skillsOf(files: Record<string, string>): Promise<string> {
  count += 1;
  const folder = join(top, `skills-${count}`);
  await mkdir(folder);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

const review = "---\nname: code-review\ndescription: Reviews code\n---\n\n# Review\n\nLook well.\n";

test("a skill is found by the name in its frontmatter, and its text comes without the frontmatter", async () => {
  const folder = await skillsOf({ "some-folder/SKILL.md": review });
  assert.deepEqual(await findSkill(["code-review"], folder), {
    skill: { name: "code-review", text: "# Review\n\nLook well.", folder: join(folder, "some-folder") },
    missing: [],
  });
  assert.deepEqual(await findSkill(["some-folder"], folder), { missing: ["some-folder"] });
});

test("only the first name that is found counts, and the names before it are told", async () => {
  const folder = await skillsOf({ "a/SKILL.md": "A", "b/SKILL.md": "B" });
  const { skill, missing } = await findSkill(["x", "b", "a", "y"], folder);
  assert.deepEqual([skill?.name, missing], ["b", ["x"]]);
});

const files: [what: string, text: string, name: string, body: string][] = [
  ["no frontmatter", "Just text", "folder", "Just text"],
  ["frontmatter without a name", "---\ndescription: x\n---\nText", "folder", "Text"],
  ["a name that is no text", "---\nname: 7\n---\nText", "folder", "Text"],
  ["a blank name", "---\nname: ' '\n---\nText", "folder", "Text"],
  ["broken frontmatter", "---\nname: [x\n  y: :\n---\nText", "folder", "Text"],
  ["frontmatter that is no map", "---\n- name\n---\nText", "folder", "Text"],
  ["empty frontmatter", "---\n---\nText", "folder", "Text"],
  ["frontmatter that does not end", "---\nname: x\nText", "folder", "---\nname: x\nText"],
  ["Windows line ends and a byte order mark", "\ufeff---\r\nname: win\r\n---\r\nText\r\n", "win", "Text"],
  ["a line later on", "---\nname: one\n---\nText\n---\nname: two\n---\n", "one", "Text\n---\nname: two\n---"],
  [
    "aliases that explode",
    `---\na: &a [x,x,x,x,x,x,x,x,x]\n${"bcdefghi"
      .split("")
      .map((key, at) => `${key}: &${key} [${Array(9).fill(`*${"abcdefgh"[at]}`)}]`)
      .join("\n")}\n---\nText`,
    "folder",
    "Text",
  ],
];
for (const [what, text, name, body] of files) {
  test(`a skill file with ${what} goes by "${name}"`, async () => {
    const folder = await skillsOf({ "folder/SKILL.md": text });
    assert.equal((await findSkill([name], folder)).skill?.text, body);
  });
}

test("skills may lie in folders of folders, but not too deep", async () => {
  const folder = await skillsOf({ "group/team/one/SKILL.md": "1", "a/b/c/d/e/f/deep/SKILL.md": "2" });
  assert.equal((await findSkill(["one"], folder)).skill?.text, "1");
  assert.deepEqual(await findSkill(["deep"], folder), { missing: ["deep"] });
});

test("of two skills with one name the one nearer to the top is taken", async () => {
  const folder = await skillsOf({ "a/b/twin/SKILL.md": "deep", "twin/SKILL.md": "near" });
  assert.equal((await findSkill(["twin"], folder)).skill?.text, "near");
});

test("a name is never used as a path", async () => {
  const folder = await skillsOf({ "a/SKILL.md": "A" });
  await mkdir(join(top, "outside"), { recursive: true });
  await writeFile(join(top, "outside", "SKILL.md"), "out");
  const names = ["../outside", "a/", "./a", join(folder, "a"), "constructor", "__proto__", "", "a\0"];
  assert.deepEqual(await findSkill(names, folder), { missing: names });
});

test("links that leave the folder are refused, those inside are followed, and circles end", async () => {
  const folder = await skillsOf({ "real/SKILL.md": "R" });
  await mkdir(join(top, "elsewhere"), { recursive: true });
  await writeFile(join(top, "elsewhere", "SKILL.md"), "---\nname: stolen\n---\nx");
  await symlink(join(top, "elsewhere"), join(folder, "link"));
  await mkdir(join(folder, "file-link"));
  await symlink(join(top, "elsewhere", "SKILL.md"), join(folder, "file-link", "SKILL.md"));
  await symlink(folder, join(folder, "circle"));
  await symlink(join(folder, "nowhere"), join(folder, "broken"));
  assert.deepEqual(await findSkill(["stolen", "file-link"], folder), { missing: ["stolen", "file-link"] });
  assert.equal((await findSkill(["real"], folder)).skill?.text, "R");
});

test("a skills folder that is itself a link works", async () => {
  const folder = await skillsOf({ "a/SKILL.md": "A" });
  await symlink(folder, join(top, "linked-skills"));
  assert.equal((await findSkill(["a"], join(top, "linked-skills"))).skill?.text, "A");
});

test("a file of more than 256 KB is no skill, and neither is a folder or a pipe", async () => {
  const folder = await skillsOf({ "large/SKILL.md": "x".repeat(256 * 1024 + 1), "dir/SKILL.md/x": "", "pipe/x": "" });
  execFileSync("mkfifo", [join(folder, "pipe", "SKILL.md")]);
  const names = ["large", "dir", "pipe"];
  assert.deepEqual(await findSkill(names, folder), { missing: names });
});

test("without a folder all names are missing, and without names nothing is", async () => {
  assert.deepEqual(await findSkill(["a"], join(top, "not-there")), { missing: ["a"] });
  assert.deepEqual(await findSkill([], join(top, "not-there")), { missing: [] });
});
