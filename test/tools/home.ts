import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { type Home, homeAt } from "../../src/config/home.ts";

/** A home of one test: a temporary folder that is removed when the test ends. */
export interface TestHome extends Home {
  /** Writes a file by its path inside the home, mode 0600; folders on the way are made. */
  write(path: string, text: string): Promise<void>;
  read(path: string): Promise<string>;
}

/** A port that the system chooses, no sandbox, no model, and one secret for all routes. */
export const previewConfig = `platforms:
  webhook:
    enabled: true
    host: 127.0.0.1
    port: 0
    secret: the-global-secret
    routes:
      hello:
        prompt: "Say hello to {name}"
agent:
  backend: preview
`;

/** Makes a home with the given files, for example `{ "config.yaml": previewConfig }`. */
export async function makeHome(t: TestContext, files: Readonly<Record<string, string>> = {}): Promise<TestHome> {
  const folder = await mkdtemp(join(tmpdir(), "postern-test-"));
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const home: TestHome = {
    ...homeAt(folder),
    async write(path, text) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text, { mode: 0o600 });
    },
    read: (path) => readFile(join(folder, path), "utf8"),
  };
  for (const [path, text] of Object.entries(files)) await home.write(path, text);
  return home;
}
