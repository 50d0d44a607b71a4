import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startFakeSmtp } from "../fakes/smtp.ts";
import { startFakeTelegram } from "../fakes/telegram.ts";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome, previewConfig, type TestHome } from "../tools/home.ts";
import { mainPath, startProgram } from "../tools/program.ts";

/** What only some targets, the demo or the tests need; of Node, what takes as long to load as all targets together. */
const heavy = [
  "node:https",
  "nodemailer",
  "markdown-it",
  "smtp-server",
  "ajv",
  "ajv-formats",
  "standardwebhooks",
  "fast-check",
];

/** Starts programs that write down which packages they load. */
function witness(home: TestHome) {
  const file = join(home.folder, "loaded.txt");
  writeFileSync(file, "");
  const probe = new URL("../tools/loaded.ts", import.meta.url).href;
  return {
    program: [process.execPath, "--import", probe, mainPath],
    env: { POSTERN_HOME: home.folder, LOADED_PACKAGES: file },
    loaded: () => [...new Set(readFileSync(file, "utf8").split("\n").filter(Boolean))],
  };
}

/** The packages that a command loads from its start to its end. */
async function loadedBy(t: TestContext, args: readonly string[], home: TestHome): Promise<readonly string[]> {
  const { program, env, loaded } = witness(home);
  const { code, err } = await startProgram(t, [...program, ...args], { env }).ended;
  assert.equal(code, 0, err);
  return loaded();
}

function heavyIn(loaded: readonly string[]): string[] {
  return heavy.filter((name) => loaded.includes(name));
}

test("the version is told without loading any package", async (t) => {
  const loaded = await loadedBy(t, ["--version"], await makeHome(t));
  assert.deepEqual(
    loaded.filter((name) => !name.startsWith("node:")),
    [],
  );
});

test("a command loads no target's dependencies, though it knows every target's settings", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const loaded = await loadedBy(t, ["target", "list"], home);
  assert.ok(loaded.includes("zod") && loaded.includes("yaml"), loaded.join(" "));
  assert.deepEqual(heavyIn(loaded), []);
  // Node's own clients take as long to load as all targets together.
  assert.ok(loaded.includes("node:crypto") && !loaded.includes("node:https"), loaded.join(" "));
});

test("a gateway starts without a target's dependencies", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const { program, env, loaded } = witness(home);
  const gateway = await startGatewayProcess(t, home, { program, env });
  await gateway.stop();
  assert.ok(loaded().includes("pino"), loaded().join(" "));
  assert.deepEqual(heavyIn(loaded()), []);
});

test("a target's dependencies are loaded when it is used, and are seen then", async (t) => {
  const smtp = await startFakeSmtp();
  t.after(() => smtp.close());
  const { user, password } = smtp.login;
  const email = { enabled: true, smtp_host: smtp.host, smtp_port: smtp.port, address: user, password };
  const home = await makeHome(t, { "config.yaml": JSON.stringify({ platforms: { email } }) });
  assert.ok((await loadedBy(t, ["target", "check", "email"], home)).includes("nodemailer"));
});

test("a gateway that starts warns of a target that its routes use and that does not work, and goes on", async (t) => {
  const telegram = await startFakeTelegram();
  t.after(() => telegram.close());
  const home = await makeHome(t, {
    "config.yaml": JSON.stringify({
      platforms: {
        webhook: {
          ...{ enabled: true, host: "127.0.0.1", port: 0, secret: "the-global-secret" },
          routes: { good: { deliver: "telegram" }, other: { deliver: "log" } },
        },
        telegram: { enabled: true, token: "99:wrong", base_url: telegram.baseUrl, home_channel: "-100" },
      },
      agent: { backend: "preview" },
    }),
  });
  const gateway = await startGatewayProcess(t, home);
  await gateway.said(/does not work now/);
  const warnings = gateway.log().filter(({ level }) => level === "warn");
  assert.deepEqual(
    warnings.map(({ msg, target, reason }) => ({ msg, target, reason })),
    [
      {
        msg: 'A target that routes use does not work now; see "postern target check"',
        target: "telegram",
        reason: 'Cannot use Telegram: it answered 401 "Unauthorized"; check the "token"',
      },
    ],
  );
  assert.equal((await fetch(`${gateway.url}/health`)).status, 200);
  assert.ok(!gateway.err.includes("99:wrong"));
  assert.equal((await gateway.stop()).code, 0);
});
