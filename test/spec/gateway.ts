import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, type TestContext } from "node:test";
import { signGithub } from "../../src/receive/verify.ts";
import type { EventRecord } from "../../src/store/store.ts";
import { type FakeTelegram, startFakeTelegram } from "../fakes/telegram.ts";
import { type GatewayProcess, startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { readLedger } from "../tools/ledger.ts";
import { type Ended, mainPath, postern, startProgram } from "../tools/program.ts";
import { until } from "../tools/wait.ts";

/** The global secret of every gateway here. */
export const globalSecret = "the-secret-of-all-routes";

export interface Settings {
  /** Routes as a configuration has them. */
  readonly routes?: Readonly<Record<string, object>>;
  /** Other keys of `platforms.webhook.extra`. */
  readonly extra?: object;
  /** Other sections of the configuration. */
  readonly sections?: object;
  /** Other sections of `platforms`. */
  readonly platforms?: object;
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** What stands before `gateway run`. */
  readonly program?: readonly string[];
  readonly args?: readonly string[];
}

/** What is posted to a route; a signed JSON object under a fresh delivery id where it says nothing else. */
export interface Post {
  /** Text and bytes as they are, anything else as JSON. */
  readonly body?: unknown;
  /** `X-GitHub-Event` */
  readonly event?: string;
  /** `X-Request-ID`; `null` sends none. */
  readonly id?: string | null;
  /** What the body is signed with; `null` leaves it unsigned. */
  readonly secret?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly reply: Readonly<Record<string, unknown>>;
  readonly headers: Headers;
  /** The delivery id that was sent. */
  readonly id: string;
}

/** A gateway in a process of its own, seen from outside. */
export interface SpecGateway {
  readonly home: TestHome;
  readonly process: GatewayProcess;
  readonly telegram: FakeTelegram;
  readonly url: string;
  post(route: string, parts?: Post): Promise<Answer>;
  /** The event of a delivery id, when nothing more will happen to it. */
  fate(id: string): Promise<EventRecord>;
  /** Whether anything is known of a delivery id. */
  isKnown(id: string): Promise<boolean>;
  /** Posts an event that an agent answers. The agent repeats its prompt, so this is the prompt. */
  promptOf(route: string, parts?: Post): Promise<string>;
  /** The status word of the reply: `accepted`, `ignored`, … */
  verdict(route: string, parts?: Post): Promise<unknown>;
  /** Waits for a line of the log. */
  logged(fields: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>;
  /** Runs a command on the gateway's home, besides it. */
  command(t: TestContext, ...args: string[]): Promise<Ended>;
}

/** What a gateway is started with. What is begun for it can be ended with `after`. */
export type MakeSettings = (telegram: FakeTelegram, t: Pick<TestContext, "after">) => Settings | Promise<Settings>;

/** One gateway for all tests of a file; it is there when the first of them begins and gone after the last. */
export function useGateway(settings: MakeSettings): SpecGateway {
  const endings: (() => unknown)[] = [];
  const t = { after: (ending: () => unknown) => endings.push(ending) } as unknown as TestContext;
  let started: SpecGateway | undefined;
  before(async () => {
    started = await openGateway(t, settings);
  });
  after(async () => {
    for (const ending of endings.reverse()) await ending();
  });
  const there = () => {
    assert.ok(started, "the gateway is there only inside of tests");
    return started;
  };
  return {
    get home() {
      return there().home;
    },
    get process() {
      return there().process;
    },
    get telegram() {
      return there().telegram;
    },
    get url() {
      return there().url;
    },
    post: (...args) => there().post(...args),
    fate: (...args) => there().fate(...args),
    isKnown: (...args) => there().isKnown(...args),
    promptOf: (...args) => there().promptOf(...args),
    verdict: (...args) => there().verdict(...args),
    logged: (...args) => there().logged(...args),
    command: (...args) => there().command(...args),
  };
}

/** A gateway for one test. */
export async function openGateway(t: TestContext, settings: MakeSettings): Promise<SpecGateway> {
  const telegram = await startFakeTelegram();
  t.after(() => telegram.close());
  const { env, program, args, ...rest } = await settings(telegram, t);
  const home = await makeHome(t, { "config.yaml": configuration(rest, telegram), ...rest.files });
  const process = await startGatewayProcess(t, home, { env, program, args });
  const gateway: SpecGateway = {
    home,
    process,
    telegram,
    url: process.url,
    post: (route, parts) => post(`${process.url}/webhooks/${route}`, parts),
    fate: (id) => until(`the end of ${id}`, async () => (await eventsOf(home, id)).find(hasEnded)),
    isKnown: async (id) => (await eventsOf(home, id)).length > 0,
    async promptOf(route, parts) {
      const { status, reply, id } = await gateway.post(route, parts);
      assert.equal(status, 202, JSON.stringify(reply));
      const { jobs } = await gateway.fate(id);
      return jobs[0]?.runs[0]?.answer ?? "";
    },
    verdict: async (route, parts) => (await gateway.post(route, parts)).reply.status,
    logged: (fields) =>
      until(`a line in the log with ${JSON.stringify(fields)}`, () =>
        process.log().find((line) => Object.entries(fields).every(([key, value]) => line[key] === value)),
      ),
    command: (test, ...args) => postern(test, args, { env: { HOME: home.folder, POSTERN_HOME: home.folder } }),
  };
  return gateway;
}

const endStates = ["done", "dead", "refused", "ignored", "waiting"];

function hasEnded({ state }: EventRecord): boolean {
  return endStates.includes(state);
}

async function eventsOf(home: TestHome, id: string): Promise<EventRecord[]> {
  return (await readLedger(home.ledger)).filter(({ deliveryId }) => deliveryId === id);
}

/** A configuration as text, with telegram ready and the debug lines in the log. JSON is YAML too. */
export function configuration({ routes, extra, sections, platforms }: Settings, telegram?: FakeTelegram): string {
  const ready = telegram && {
    telegram: { enabled: true, token: telegram.token, home_channel: "42", extra: { base_url: telegram.baseUrl } },
  };
  return JSON.stringify({
    platforms: {
      webhook: {
        enabled: true,
        extra: {
          host: "127.0.0.1",
          port: 0,
          secret: globalSecret,
          rate_limit: 100_000,
          ...extra,
          routes: routes ?? {},
        },
      },
      ...ready,
      ...platforms,
    },
    agent: { backend: "preview" },
    log: { level: "debug" },
    ...sections,
  });
}

/** Posts to any address as a sender does. */
export async function post(url: string, parts: Post = {}): Promise<Answer> {
  const { body = { what: "this" }, event, secret = globalSecret } = parts;
  const id = parts.id === undefined ? randomUUID() : parts.id;
  const bytes = typeof body === "string" || body instanceof Uint8Array ? Buffer.from(body) : JSON.stringify(body);
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(event === undefined ? {} : { "x-github-event": event }),
      ...(id === null ? {} : { "x-request-id": id }),
      ...(secret === null ? {} : { "x-hub-signature-256": signGithub(secret, bytes) }),
      ...parts.headers,
    },
    body: bytes,
  });
  const reply = (await response.json()) as Answer["reply"];
  return { status: response.status, reply, headers: response.headers, id: id ?? String(reply.delivery_id) };
}

export interface Attempt {
  /** The text of `config.yaml`; none when not set. */
  readonly config?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
}

/** Starts a gateway that must refuse to start; fails when it listens. */
export async function refusal(t: TestContext, { config, files, env, args = [] }: Attempt): Promise<Ended> {
  const home = await makeHome(t, { ...(config === undefined ? {} : { "config.yaml": config }), ...files });
  const argv = [process.execPath, mainPath, "gateway", "run", ...args];
  const program = startProgram(t, argv, { env: { HOME: home.folder, POSTERN_HOME: home.folder, ...env } });
  await assert.rejects(program.said(/Postern listens on/), /ended without saying/);
  return program.ended;
}
