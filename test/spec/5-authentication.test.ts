import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { startFakeGithub } from "../fakes/github.ts";
import { missing } from "../needs.ts";
import { head, openWire } from "../tools/wire.ts";
import { configuration, globalSecret, openGateway, refusal, useGateway } from "./gateway.ts";

const own = "a-secret-of-its-own";

const gateway = useGateway(() => ({
  routes: {
    plain: {},
    own: { secret: own },
    open: { secret: "INSECURE_NO_AUTH" },
    rotating: { secret: ["the-new-secret", "the-old-secret"] },
  },
}));

const body = '{ "a" : "é" }';
const hex = (secret: string, text: string | Buffer = body) => createHmac("sha256", secret).update(text).digest("hex");

async function statusOf(route: string, headers: Record<string, string>, text: string | Buffer = body): Promise<number> {
  const answer = await gateway.post(route, { body: text, secret: null, headers });
  if (answer.status === 401) assert.equal(await gateway.isKnown(answer.id), false, "a refused event leaves no trace");
  return answer.status;
}

test('5.1 "Each route must have a secret, either its own or the global one"', async () => {
  assert.equal((await gateway.post("own", { secret: own })).status, 202);
  assert.equal((await gateway.post("plain", { secret: globalSecret })).status, 202);
});

test('5.1 "A route with no secret makes the adapter fail at startup"', async (t) => {
  const config = configuration({ routes: { a: { secret: own }, b: {}, c: {} }, extra: { secret: undefined } });
  const { code, err } = await refusal(t, { config });
  assert.equal(code, 78);
  assert.match(err, /routes\.b\.secret: The route has no secret; set "secret" on it/);
  assert.match(err, /routes\.c\.secret: The route has no secret/);
  assert.doesNotMatch(err, /routes\.a\./);
});

test("5.1 an empty or blank secret is none", async (t) => {
  const secrets = ["", "  ", [], ["a-good-one", ""]];
  const routes = Object.fromEntries(secrets.map((secret, index) => [`r${index}`, { secret }]));
  const { code, err } = await refusal(t, { config: configuration({ routes }) });
  assert.equal(code, 78);
  for (const index of secrets.keys()) {
    const complaint = new RegExp(`routes\\.r${index}\\.secret: (A secret is empty|The list of secrets is empty)`);
    assert.match(err, complaint);
  }
});

test('5.2 "`X-Hub-Signature-256`: HMAC-SHA256 hex digest of the raw body, prefixed with `sha256=`"', async () => {
  const name = "x-hub-signature-256";
  assert.equal(await statusOf("own", { [name]: `sha256=${hex(own)}` }), 202);
  assert.equal(await statusOf("own", { [name]: `sha256=${hex(own).toUpperCase()}` }), 202);
  assert.equal(await statusOf("own", { [name]: hex(own) }), 401);
  assert.equal(await statusOf("own", { [name]: `sha256=${hex(own, JSON.stringify(JSON.parse(body)))}` }), 401);
  assert.equal(await statusOf("own", { [name]: `sha256=${hex("another")}` }), 401);
});

test('5.2 "`X-HostB-Token`: Plain string equality with the secret (not HMAC)"', async () => {
  for (const name of ["x-hostb-token", "x-gitlab-token"]) {
    assert.equal(await statusOf("own", { [name]: own }), 202);
    for (const wrong of [own.toUpperCase(), own.slice(1), `${own}x`, hex(own), "undefined"]) {
      assert.equal(await statusOf("own", { [name]: wrong }), 401, wrong);
    }
  }
});

test('5.2 "`X-Webhook-Signature`: Raw HMAC-SHA256 hex digest of the body, with no prefix"', async () => {
  assert.equal(await statusOf("own", { "x-webhook-signature": hex(own) }), 202);
  assert.equal(await statusOf("own", { "x-webhook-signature": `sha256=${hex(own)}` }), 401);
  assert.equal(await statusOf("own", { "x-webhook-signature": hex(own, `${body} `) }), 401);
});

test('5.2 "Verification method by request header": the first that is there decides, and no second one rescues it', async () => {
  const wrong = `sha256=${hex("another")}`;
  assert.equal(await statusOf("own", { "x-hub-signature-256": wrong, "x-gitlab-token": own }), 401);
  assert.equal(await statusOf("own", { "x-hub-signature-256": wrong, "x-webhook-signature": hex(own) }), 401);
  assert.equal(await statusOf("own", { "x-gitlab-token": "wrong", "x-webhook-signature": hex(own) }), 401);
});

test('5.2 a signature is over "the raw body", whatever bytes it has', async () => {
  const bytes = Buffer.from('{"a":"\u00e9\ud83e\udd8a","b":  1e2}\n');
  assert.equal(await statusOf("own", { "x-webhook-signature": hex(own, bytes) }, bytes), 202);
});

test("5.2 a header that is there twice is refused", async (t) => {
  const wire = await openWire(t, gateway.process.port);
  const twice = { "x-webhook-signature": [hex(own, "{}"), hex(own, "{}")] };
  wire.write(head("POST /webhooks/own", { "content-length": "2", ...twice }), "{}");
  assert.equal((await wire.answer()).status, 401);
});

test('5.3 "When a secret is configured and none of these headers is present, the request is rejected"', async () => {
  assert.equal(await statusOf("own", {}), 401);
  assert.equal(await statusOf("plain", { authorization: `Bearer ${globalSecret}` }), 401);
  assert.equal(await statusOf("plain", { "x-hub-signature-256": "" }), 401);
});

test('5.4 "An invalid or missing signature gives HTTP 401"', async () => {
  const { status, reply } = await gateway.post("own", { secret: "wrong" });
  assert.deepEqual([status, reply], [401, { error: "Invalid signature" }]);
});

test('5.4 "A warning containing `Invalid signature` is logged"', async () => {
  await gateway.post("own", { secret: null });
  const line = await gateway.logged({ level: "warn", path: "/webhooks/own" });
  assert.match(String(line.msg), /Invalid signature/);
  assert.ok(!gateway.process.err.includes(own), "no secret is in the log");
  assert.ok(!gateway.process.err.includes(hex(own, '{"what":"this"}')), "what was expected is not in the log");
});

test('5.5 "The secret value `INSECURE_NO_AUTH` disables verification entirely"', async () => {
  assert.equal(await statusOf("open", {}), 202);
  assert.equal(await statusOf("open", { "x-hub-signature-256": "sha256=nonsense" }), 202);
});

for (const host of ["127.0.0.1", "localhost", "::1"]) {
  test(`5.5 "accepts it only when bound to a loopback address": \`${host}\``, async (t) => {
    const other = await openGateway(t, () => ({ routes: { open: { secret: "INSECURE_NO_AUTH" } }, extra: { host } }));
    assert.equal((await other.post("open", { secret: null })).status, 202);
  });
}

for (const host of ["0.0.0.0", "::"]) {
  test(`5.5 "With a non-loopback bind (e.g. \`0.0.0.0\`), the adapter refuses to start": \`${host}\``, async (t) => {
    const routes = { open: { secret: "INSECURE_NO_AUTH" } };
    const { code, err } = await refusal(t, { config: configuration({ routes, extra: { host } }) });
    assert.equal(code, 78);
    assert.match(err, /routes\.open\.secret: INSECURE_NO_AUTH is only for a gateway on 127\.0\.0\.1, localhost or ::1/);
  });
}

test("5.5 the same holds for the global secret, and for an address by flag", async (t) => {
  const config = configuration({ routes: { a: {} }, extra: { secret: "INSECURE_NO_AUTH" } });
  const { code, err } = await refusal(t, { config, args: ["--host", "0.0.0.0"] });
  assert.equal(code, 78);
  assert.match(err, /INSECURE_NO_AUTH is only for/);
});

test('5.6 "Secrets should be rotated periodically": two of them are in force while the sender is changed', async () => {
  assert.equal((await gateway.post("rotating", { secret: "the-new-secret" })).status, 202);
  assert.equal((await gateway.post("rotating", { secret: "the-old-secret" })).status, 202);
  assert.equal((await gateway.post("rotating", { secret: "the-oldest-secret" })).status, 401);
});

test('5.6 "The secret must be updated both at the sending service and in the configuration"', async (t) => {
  const other = await openGateway(t, () => ({ routes: { a: { secret: "before-the-change" } } }));
  assert.equal((await other.post("a", { secret: "before-the-change" })).status, 202);
  const text = await other.home.read("config.yaml");
  await other.home.write("config.yaml", text.replace("before-the-change", "after-the-change"));
  other.process.kill("SIGHUP");
  await other.logged({ msg: "Configuration reloaded" });
  assert.equal((await other.post("a", { secret: "after-the-change" })).status, 202);
  assert.equal((await other.post("a", { secret: "before-the-change" })).status, 401);
});

test('5.7 "The code-host CLI used by `host_a_comment` authenticates separately on the gateway host"', {
  skip: missing("gh"),
}, async (t) => {
  const github = await startFakeGithub();
  t.after(() => github.close());
  const { GH_CONFIG_DIR = "" } = github.env;
  const other = await openGateway(t, () => ({
    routes: { a: { deliver: "host_a_comment", deliver_extra: { repo: "acme/boat", pr_number: 1 }, prompt: "Hi" } },
    // The right webhook secret and a login of its own that the other side does not know.
    env: { GH_CONFIG_DIR, GH_TOKEN: "ghp_anotherLogin" },
  }));
  const { status, id } = await other.post("a");
  assert.equal(status, 202);
  const { state, jobs } = await other.fate(id);
  assert.equal(state, "dead");
  assert.match(jobs[0]?.messages[0]?.reason ?? "", /GitHub answered 401/);
});
