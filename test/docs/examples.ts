import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { parse } from "yaml";
import { handle, type Reply } from "../../src/gateway/pipeline.ts";
import type { EventRecord } from "../../src/store/store.ts";
import { problemsOf } from "../config/loading.ts";
import { request, type Scene, setScene } from "../tools/scene.ts";
import { until } from "../tools/wait.ts";
import type { Block } from "./blocks.ts";

/*
 * Examples in pages are blocks that follow each other; the word behind the language says what a block is:
 *
 *   yaml route              one route by its name; begins an example
 *   bash script NAME        a file in the home's scripts folder, for all routes of the page (also python)
 *   text file PATH          a file in the home, likewise
 *   json event [TYPE] [header=value …]   an event that is sent to the route
 *   json reply              what its sender is told; "…" stands for any value
 *   text prompt | message   the agent's prompt, or what a direct delivery sends
 *   json address            the rendered deliver_extra of the message
 *   text reason             why the event was ignored, as in the record
 *   text failure            why a direct delivery failed, as in the record
 *   text problems           what "postern config check" says about the route, each line "key in the route: message"
 */

/** A route with what is done to it. */
export interface Example {
  readonly name: string;
  readonly route: Block;
  readonly steps: readonly Block[];
}

const steps = ["event", "reply", "prompt", "message", "address", "reason", "failure", "problems"];
const files = ["script", "file"];

/** All words that make a block part of an example. */
export const exampleKinds: readonly string[] = ["route", ...steps, ...files];

/** Splits a page's blocks into examples. */
export function examplesIn(blocks: readonly Block[]): Example[] {
  const examples: { name: string; route: Block; steps: Block[] }[] = [];
  for (const block of blocks) {
    if (block.kind === "route") examples.push({ name: `${block.page}:${block.line}`, route: block, steps: [] });
    else if (steps.includes(block.kind)) {
      const last = examples.at(-1);
      assert.ok(last, `${block.page}:${block.line}: "${block.kind}" stands before any route`);
      last.steps.push(block);
    }
  }
  return examples;
}

/** The files that a page shows, by their paths in the home. */
export function filesIn(blocks: readonly Block[]): Record<string, string> {
  const shown = blocks.filter(({ kind }) => files.includes(kind));
  return Object.fromEntries(
    shown.map(({ kind, words, text }) => [kind === "script" ? `scripts/${words[0]}` : (words[0] ?? ""), text]),
  );
}

/** Does what an example says and compares. */
export async function runExample(t: TestContext, example: Example, homeFiles: Record<string, string>): Promise<void> {
  assert.ok(example.steps.length > 0, "The example shows nothing that comes of it");
  const problems = example.steps.find(({ kind }) => kind === "problems");
  if (problems) return compareProblems(t, example.route, problems);
  const scene = await setScene(t, { routes: parse(example.route.text), files: homeFiles });
  let sent: Sent | undefined;
  for (const block of example.steps) {
    if (block.kind === "event") sent = await send(scene, block);
    else {
      assert.ok(sent, `line ${block.line}: "${block.kind}" stands before any event`);
      await comparisons[block.kind]?.(block, sent, scene);
    }
  }
}

interface Sent {
  readonly reply: Reply;
  /** As it is in the ledger. */
  readonly record: EventRecord;
}

let count = 0;

async function send(scene: Scene, { text, words }: Block): Promise<Sent> {
  const pairs = words.filter((word) => word.includes("=")).map((word) => word.split("=") as [string, string]);
  const event = words.find((word) => !word.includes("="));
  const id = `example-${++count}`;
  const [route = ""] = scene.config.routes.keys();
  const headers = Object.fromEntries(pairs);
  const { reply } = await handle(request({ route, body: text.trim(), id, event, headers }), scene.gateway);
  // Ignored events are recorded after the reply.
  const record = await until("the record", async () =>
    (await scene.events()).find(({ deliveryId }) => deliveryId === id),
  );
  return { reply, record };
}

type Compare = (block: Block, sent: Sent, scene: Scene) => void | Promise<void>;

const comparisons: Readonly<Record<string, Compare>> = {
  reply: ({ text }, { reply }) => {
    const expected = JSON.parse(text) as Record<string, unknown>;
    const shown = Object.entries(reply).map(([key, value]) => [key, expected[key] === "…" ? "…" : value]);
    assert.deepEqual(Object.fromEntries(shown), expected);
  },
  prompt: ({ text }, { record }) => {
    const plan = JSON.parse(record.jobs[0]?.plan ?? "{}") as { prompt?: string };
    assert.equal(`${plan.prompt}`.trimEnd(), text.trimEnd());
  },
  message: ({ text }, { record }) => {
    assert.deepEqual([record.jobs[0]?.kind, record.jobs[0]?.state], ["direct", "done"]);
    assert.equal(record.jobs[0]?.messages[0]?.text?.trimEnd(), text.trimEnd());
  },
  address: ({ text }, { record }) => {
    assert.deepEqual(JSON.parse(record.jobs[0]?.messages[0]?.extra ?? "{}"), JSON.parse(text));
  },
  reason: ({ text }, { record }) => {
    assert.equal(record.state, "ignored");
    assert.equal(record.reason, text.trim());
  },
  failure: ({ text }, { record }) => {
    assert.equal(record.state, "refused");
    assert.equal(record.reason, text.trim());
  },
};

/** The route as it would stand in `config.yaml`; what is said of it, by the key inside the route. */
async function compareProblems(t: TestContext, route: Block, expected: Block): Promise<void> {
  const indented = route.text.replaceAll(/^(?=.)/gm, "      ");
  const yaml = `platforms:\n  webhook:\n    secret: the-global-secret\n    routes:\n${indented}`;
  const problems = await problemsOf(t, yaml);
  const name = Object.keys(parse(route.text))[0];
  const said = problems.map(
    ({ key, message }) => `${key.replace(`platforms.webhook.routes.${name}.`, "")}: ${message}`,
  );
  assert.deepEqual(said, expected.text.trimEnd().split("\n"));
}
