import assert from "node:assert/strict";
import { test } from "node:test";
import { startFakeGithub } from "../fakes/github.ts";
import { startFakeOpenAI } from "../fakes/openai.ts";
import { missing } from "../needs.ts";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { postGithubEvent } from "../tools/github-event.ts";
import { makeHome } from "../tools/home.ts";
import { readLedger } from "../tools/ledger.ts";
import { until } from "../tools/wait.ts";

const config = (baseUrl: string) => `
platforms:
  webhook:
    enabled: true
    host: 127.0.0.1
    port: 0
    routes:
      reviews:
        secret: the-hook-secret
        events: [pull_request]
        filters: [{ field: action, in: [opened] }]
        prompt: "Review #{number} of {repository.full_name}: {pull_request.title}"
        skills: [reviewing]
        deliver: github_comment
        deliver_extra: { repo: "{repository.full_name}", pr_number: "{number}" }
model:
  provider: openai-compatible
  name: scripted
  base_url: ${baseUrl}
`;

const skill = `---
name: reviewing
description: How we review
---
Be brief and kind.
`;

// Each line shows one thing about where the command runs.
const command = 'echo "uid $(id -u)"; ls /root 2>&1; cat /proc/net/dev | wc -l; env | grep -c OPENAI; echo kept > note';

test("a signed pull request becomes an agent run in the sandbox, and its answer a comment posted by gh", {
  skip: missing("bwrap", "setpriv", "gh"),
}, async (t) => {
  const github = await startFakeGithub();
  t.after(() => github.close());
  const model = await startFakeOpenAI([
    { toolCalls: [{ name: "terminal", arguments: { command } }] },
    { toolCalls: [{ name: "terminal", arguments: { command: "cat note" } }] },
    { text: "One question about berth 4, otherwise fine." },
  ]);
  t.after(() => model.close());
  const home = await makeHome(t, { "config.yaml": config(model.baseUrl), "skills/reviewing/SKILL.md": skill });
  const env = { ...github.env, OPENAI_API_KEY: "sk-key-of-the-model-0001" };
  const gateway = await startGatewayProcess(t, home, { env });

  const response = await postGithubEvent(`${gateway.url}/webhooks/reviews`, { secret: "the-hook-secret", id: "e2e-1" });
  assert.equal(response.status, 202);
  assert.deepEqual(await response.json(), {
    status: "accepted",
    route: "reviews",
    event: "pull_request",
    delivery_id: "e2e-1",
  });
  await until("the comment", () => github.messages.length === 1);
  const ended = await until("the job's end", async () =>
    (await readLedger(home.ledger)).find(({ state }) => state === "done"),
  );

  const [comment] = github.messages;
  assert.equal(comment?.repo, "lanternworks/harbor");
  assert.equal(comment?.number, 1347);
  assert.match(comment?.text ?? "", /^One question about berth 4, otherwise fine\./);

  const [first, second, third] = model.requests.map(({ messages }) => messages);
  const prompt = JSON.stringify(first);
  assert.match(
    prompt,
    /Be brief and kind[\s\S]*Review #1347 of lanternworks\/harbor: Keep a berth free for the pilot boat/,
  );
  const output = JSON.stringify(second?.at(-1));
  assert.match(output, /uid 1000/);
  assert.match(output, /cannot access|No such file|cannot open/, "the host's /root is not there");
  // Two head lines and the loopback device: no way out.
  assert.match(output, /\\n3\\n0/, "no network device but loopback, and no key in the environment");
  assert.match(JSON.stringify(third?.at(-1)), /kept/, "two commands of one run share their files");

  const [run] = ended.jobs[0]?.runs ?? [];
  assert.equal(run?.outcome, "completed");
  assert.equal(run?.answer, "One question about berth 4, otherwise fine.");
  assert.equal(ended.jobs[0]?.messages[0]?.reference, comment?.url);
  assert.equal((await gateway.stop()).code, 0);
  const everything = gateway.err + JSON.stringify(ended);
  assert.ok(!everything.includes("sk-key-of-the-model-0001"), "the key is in no log and no record");
  assert.ok(!everything.includes("the-hook-secret"), "the secret is in no log and no record");
});
