import assert from "node:assert/strict";
import { readdir, stat } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { loadConfig } from "../../src/config/load.ts";
import {
  buildSubscriptions,
  type DocumentStore,
  filePlace,
  readEntries,
  storePlace,
} from "../../src/config/subscriptions.ts";
import { UserError } from "../../src/core/errors.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { startProgram } from "../tools/program.ts";

/** What a subscriptions file gives in a home with a global secret and Telegram set up. */
async function subscribed(t: TestContext, entries: unknown, webhook = "") {
  const yaml = `platforms:\n  webhook: { secret: the-global-secret${webhook} }\n  telegram: { enabled: true, token: "1:a" }\n`;
  const home = await makeHome(t, { "config.yaml": yaml });
  const { routeContext } = await loadConfig({ home, env: {} });
  const text = typeof entries === "string" ? entries : JSON.stringify(entries);
  const { routes, errors } = buildSubscriptions(text, home, routeContext);
  return { routes, errors, names: [...routes.keys()] };
}

test("a subscription is a route, with its own secret or the global one", async (t) => {
  const { routes, errors } = await subscribed(t, {
    own: { secret: "own-secret", events: ["push"], prompt: "{a}", description: "x", created_at: "2026-01-01" },
    shared: { name: "shared", deliver: "chat_target_01", deliver_extra: { chat_id: "-100" } },
  });
  assert.deepEqual(errors, []);
  assert.equal(routes.get("own")?.origin, "subscription");
  assert.deepEqual(routes.get("own")?.secrets, ["own-secret"]);
  assert.deepEqual(routes.get("shared")?.secrets, ["the-global-secret"]);
  assert.equal(routes.get("shared")?.outlets[0]?.target.name, "telegram");
});

/** A bad entry, and why it is skipped. */
const bad: readonly (readonly [what: string, entry: unknown, why: RegExp])[] = [
  ["a number", 5, /Expected a mapping of keys to values, found 5/],
  ["nothing", null, /Expected a mapping/],
  ["an unknown key", { event: ["push"] }, /event: Unknown key "event"; did you mean "events"/],
  ["tools, which only the configuration may give", { tools: ["terminal"] }, /tools: Unknown key "tools"/],
  ["an unknown target", { deliver: "telegrm" }, /deliver: Unknown target "telegrm"; did you mean "telegram"/],
  ["a target that is not set up", { deliver: "email" }, /deliver: The target "email" cannot be used/],
  ["an empty secret", { secret: "" }, /secret: A secret is empty/],
  ["INSECURE_NO_AUTH off loopback", { secret: "INSECURE_NO_AUTH" }, /secret: INSECURE_NO_AUTH is only for/],
  ["deliver_only to the log", { deliver_only: true }, /deliver: deliver_only needs a real target/],
  [
    "a bad filter",
    { filters: [{ any: [{ field: "a", eq: 1 }] }] },
    /filters\.0\.any\.0\.eq: There is no operator "eq"/,
  ],
  ["a secret that is a number", { secret: 8675309 }, /secret: Expected text or a list of texts$/],
];

for (const [what, entry, why] of bad) {
  test(`an entry with ${what} is skipped with an error and leaves the others`, async (t) => {
    const { names, errors } = await subscribed(t, { before: {}, broken: entry, after: {} });
    assert.deepEqual(names, ["before", "after"]);
    assert.equal(errors.length, 1);
    assert.match(errors[0] ?? "", /^The subscription "broken" is skipped: /);
    assert.match(errors[0] ?? "", why);
  });
}

test("an entry whose name cannot be a route's is skipped", async (t) => {
  const { names, errors } = await subscribed(t, '{"good":{},"bad name":{},"__proto__":{},"":{}}');
  assert.deepEqual(names, ["good"]);
  assert.equal(errors.length, 3);
  for (const error of errors) assert.match(error, /is skipped: A route name begins with a letter or digit/);
});

test("INSECURE_NO_AUTH is taken when the gateway listens on loopback", async (t) => {
  const { names } = await subscribed(t, { open: { secret: "INSECURE_NO_AUTH" } }, ", host: 127.0.0.1");
  assert.deepEqual(names, ["open"]);
});

test("numbers keep their digits", async (t) => {
  const text = '{"big":{"deliver":"telegram","deliver_extra":{"chat_id":-9007199254740993,"thread_id":7}}}';
  const { routes } = await subscribed(t, text);
  assert.deepEqual(routes.get("big")?.outlets[0]?.extra, { chat_id: "-9007199254740993", thread_id: "7" });
});

test("a change keeps what other entries hold, digits and unknown keys included", async (t) => {
  const home = await makeHome(t, {
    "webhook_subscriptions.json": '{"old":{"deliver_extra":{"chat_id":-9007199254740993},"colour":"blue"}}',
  });
  await filePlace(home.subscriptions).change((entries) => ({ ...entries, fresh: {} }));
  assert.equal(
    await home.read("webhook_subscriptions.json"),
    `{
  "old": {
    "deliver_extra": {
      "chat_id": -9007199254740993
    },
    "colour": "blue"
  },
  "fresh": {}
}
`,
  );
});

test("the file is made with mode 0600 in a folder with mode 0700, and nothing is left beside it", async (t) => {
  const outer = await makeHome(t);
  const folder = `${outer.folder}/deep/home`;
  await filePlace(`${folder}/webhook_subscriptions.json`).change(() => ({ a: {} }));
  assert.equal((await stat(folder)).mode & 0o777, 0o700);
  assert.equal((await stat(`${folder}/webhook_subscriptions.json`)).mode & 0o777, 0o600);
  assert.deepEqual((await readdir(folder)).sort(), ["webhook_subscriptions.json", "webhook_subscriptions.json.lock"]);
});

test("a change that throws leaves the file as it is, and frees the lock", async (t) => {
  const home = await makeHome(t, { "webhook_subscriptions.json": '{"a":{}}' });
  const failing = filePlace(home.subscriptions).change(() => {
    throw new UserError("No");
  });
  await assert.rejects(failing, { message: "No" });
  assert.equal(await home.read("webhook_subscriptions.json"), '{"a":{}}');
  await filePlace(home.subscriptions).change(() => ({}));
});

for (const [what, text] of [
  ["cut off", '{"a":{"secret":"hunter2-8675309"'],
  ["no JSON at all", "secret: hunter2-8675309"],
  ["a list", '["hunter2-8675309"]'],
  ["broken inside a secret", '{"a":{"secret":hunter2-8675309}}'],
] as const) {
  test(`a file that is ${what} is not touched, and the error says so without a secret`, async (t) => {
    const home = await makeHome(t, { "webhook_subscriptions.json": text });
    const clear = (error: unknown) => {
      assert.ok(error instanceof UserError);
      assert.match(
        error.message,
        /^The subscriptions file ".*" is damaged \(it is not .*\); mend it or restore a copy$/,
      );
      assert.doesNotMatch(error.message, /hunter2|8675309/);
      return true;
    };
    await assert.rejects(readEntries(filePlace(home.subscriptions)), clear);
    await assert.rejects(
      filePlace(home.subscriptions).change(() => ({})),
      clear,
    );
    assert.equal(await home.read("webhook_subscriptions.json"), text);
  });
}

test("a missing or empty file holds no entries", async (t) => {
  assert.deepEqual(await readEntries(filePlace((await makeHome(t)).subscriptions)), {});
  assert.deepEqual(
    await readEntries(filePlace((await makeHome(t, { "webhook_subscriptions.json": "\n" })).subscriptions)),
    {},
  );
});

function changer(t: TestContext, home: TestHome, number: number) {
  const module = new URL("../../src/config/subscriptions.ts", import.meta.url).href;
  const script = `
    import { filePlace } from ${JSON.stringify(module)};
    const place = filePlace(${JSON.stringify(home.subscriptions)});
    for (const turn of [1, 2]) {
      await place.change((entries) => ({ ...entries, ["name-${number}-" + turn]: { secret: "s" } }));
    }`;
  return startProgram(t, [process.execPath, "--input-type=module-typescript", "-e", script]).ended;
}

test("twenty processes that change the file at once lose nothing, and no reader sees half a file", async (t) => {
  const home = await makeHome(t);
  const ends = Promise.all(Array.from({ length: 20 }, (_, number) => changer(t, home, number)));
  let isOver = false;
  const over = ends.finally(() => {
    isOver = true;
  });
  // Fails with "damaged" on the first mixture it sees.
  while (!isOver) await readEntries(filePlace(home.subscriptions));
  for (const { code, err } of await over) assert.equal(code, 0, err);
  const names = Object.keys(await readEntries(filePlace(home.subscriptions))).sort();
  const expected = Array.from({ length: 20 }, (_, number) => [1, 2].map((turn) => `name-${number}-${turn}`)).flat();
  assert.deepEqual(names, expected.sort());
  assert.equal((await stat(home.subscriptions)).mode & 0o777, 0o600);
});

/** A store that keeps documents, and lets others in between each reading and writing. */
function documents(): DocumentStore & { readonly news: string[]; text(): string | undefined } {
  let document: { version: number; text: string } | undefined;
  const news: string[] = [];
  return {
    news,
    text: () => document?.text,
    async readDocument() {
      return document;
    },
    async writeDocument({ seen, text }) {
      if (seen !== (document?.version ?? 0)) return false;
      document = { version: seen + 1, text };
      return true;
    },
    announce: (one) => void news.push(one),
  };
}

test("in a store, they are one document with a version, and whoever changes it says so", async () => {
  const store = documents();
  const place = storePlace(store);
  assert.deepEqual(await place.read(), { version: "0", text: "" });
  assert.deepEqual(await readEntries(place), {});
  await place.change(() => ({ a: { secret: "s" } }));
  assert.equal(await place.version(), "1");
  assert.equal(store.text(), '{\n  "a": {\n    "secret": "s"\n  }\n}\n', "the text that the file would have");
  assert.deepEqual(store.news, ["subscriptions"]);
  assert.deepEqual(await readEntries(place), { a: { secret: "s" } });
});

test("in a store, changes that are made at the same time lose nothing", async () => {
  const store = documents();
  const change = (name: string) => storePlace(store).change((entries) => ({ ...entries, [name]: {} }));
  const names = Array.from({ length: 50 }, (_, number) => `name-${number}`);
  await Promise.all(names.map(change));
  assert.deepEqual(Object.keys(await readEntries(storePlace(store))).sort(), names.sort());
  assert.equal(await storePlace(store).version(), "50");
});

test("in a store, a change that throws leaves them as they are, and nothing is said", async () => {
  const store = documents();
  const failing = storePlace(store).change(() => {
    throw new UserError("No");
  });
  await assert.rejects(failing, { message: "No" });
  assert.equal(store.text(), undefined);
  assert.deepEqual(store.news, []);
});

test("in a store that others change without end, a change is given up with a sentence", async () => {
  const store = { ...documents(), writeDocument: async () => false };
  await assert.rejects(
    storePlace(store).change(() => ({})),
    { name: "UserError", message: /is changed by others again and again; try again$/ },
  );
});

test("in a store, a damaged document is not touched, and the error says so without a secret", async () => {
  const store = documents();
  await store.writeDocument({ name: "subscriptions", seen: 0, text: '{"a":{"secret":hunter2}}' });
  const place = storePlace(store);
  const clear = {
    name: "UserError",
    message: /^The list of subscriptions in the database is damaged \(it is not JSON/,
  };
  await assert.rejects(readEntries(place), clear);
  await assert.rejects(
    place.change(() => ({})),
    clear,
  );
  assert.equal(store.text(), '{"a":{"secret":hunter2}}');
});
