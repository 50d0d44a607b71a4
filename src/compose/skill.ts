import { constants, type Dirent } from "node:fs";
import { open, readdir, realpath } from "node:fs/promises";
import { basename, join, sep } from "node:path";
import { parse } from "yaml";
import { isObject } from "../core/json.ts";
import type { Skill } from "../core/types.ts";

/** The skill of a run. */
export interface FoundSkill {
  readonly skill?: Skill;
  /** Names before it in the list that were looked for and not found; all of them when there is no skill. */
  readonly missing: string[];
}

/** Larger files are no skills: the text goes before every prompt. */
const maxSkillBytes = 256 * 1024;

/** Folders below the skills folder that are looked into: `skills/<group>/<name>/SKILL.md` and one more. */
const deepestFolder = 4;

/** Most folders looked into, so that a link to a large tree costs no more than a moment. */
const mostFolders = 2000;

/**
 * Finds the first of a route's `skills` that is there (specification section 2.3): only one is loaded. A skill's name is the one
 * in the frontmatter of its `SKILL.md`, else that of its folder; a name is compared and never used as a path.
 */
export async function findSkill(names: readonly string[], skillsFolder: string): Promise<FoundSkill> {
  if (names.length === 0) return { missing: [] };
  const skills = await readSkills(skillsFolder);
  const at = names.findIndex((name) => skills.has(name));
  if (at === -1) return { missing: [...names] };
  return { skill: skills.get(names[at]!)!, missing: names.slice(0, at) };
}

/** Every skill by its name; of two with the same name, the one nearer to the top. */
async function readSkills(skillsFolder: string): Promise<ReadonlyMap<string, Skill>> {
  const skills = new Map<string, Skill>();
  for await (const folder of folders(skillsFolder)) {
    const text = await readSkillFile(join(folder, "SKILL.md"), skillsFolder);
    if (text === undefined) continue;
    const skill = readSkill(text, folder);
    if (!skills.has(skill.name)) skills.set(skill.name, skill);
  }
  return skills;
}

/** The skills folder and the folders below it, level by level and in the order of their names. */
async function* folders(top: string): AsyncGenerator<string> {
  let level = [top];
  let count = 0;
  const seen = new Set<string>();
  for (let depth = 0; depth <= deepestFolder && level.length > 0; depth += 1) {
    const next: string[] = [];
    for (const folder of level) {
      const real = await realPathInside(folder, top);
      if (real === undefined || seen.has(real) || count >= mostFolders) continue;
      seen.add(real);
      count += 1;
      yield folder;
      next.push(...(await foldersIn(folder)));
    }
    level = next;
  }
}

async function foldersIn(folder: string): Promise<string[]> {
  const mayBeFolder = (entry: Dirent) => entry.isDirectory() || entry.isSymbolicLink();
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries
      .filter(mayBeFolder)
      .map(({ name }) => join(folder, name))
      .sort();
  } catch {
    // A link to a file, or a folder we may not enter: there are no skills in it.
    return [];
  }
}

/** The real path when it is the skills folder or lies inside it. */
async function realPathInside(path: string, top: string): Promise<string | undefined> {
  try {
    const [real, realTop] = await Promise.all([realpath(path), realpath(top)]);
    return real === realTop || real.startsWith(realTop + sep) ? real : undefined;
  } catch {
    // Nothing there, a link that leads nowhere, or one that leads to itself.
    return undefined;
  }
}

async function readSkillFile(path: string, top: string): Promise<string | undefined> {
  const real = await realPathInside(path, top);
  if (real === undefined) return undefined;
  // Without O_NONBLOCK a pipe of that name would be waited for.
  const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const stats = await file.stat();
    return stats.isFile() && stats.size <= maxSkillBytes ? await file.readFile("utf8") : undefined;
  } finally {
    await file.close();
  }
}

const frontmatter = /^---[ \t]*\r?\n([\s\S]*?\n)?---[ \t]*(?:\r?\n|$)/;

function readSkill(file: string, folder: string): Skill {
  const text = file.startsWith("\ufeff") ? file.slice(1) : file;
  const head = frontmatter.exec(text);
  const body = head === null ? text : text.slice(head[0].length);
  return { name: nameIn(head?.[1]) ?? basename(folder), text: body.trim(), folder };
}

function nameIn(yaml: string | undefined): string | undefined {
  if (yaml === undefined) return undefined;
  try {
    const fields: unknown = parse(yaml, { logLevel: "error" });
    const name = isObject(fields) && Object.hasOwn(fields, "name") ? fields.name : undefined;
    return typeof name === "string" && name.trim() !== "" ? name.trim() : undefined;
  } catch {
    // Broken frontmatter must not hide the skill: it goes by its folder's name.
    return undefined;
  }
}
