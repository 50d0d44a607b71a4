import type { Command } from "commander";
import type { Entries } from "../config/subscriptions.ts";
import { type CommonOptions, type Context, print } from "./context.ts";
import { withSubscriptions } from "./subscriptions.ts";
import { append, appendJson, appendPair, parseList, parseSeconds } from "./values.ts";
import type { SubscribeOptions } from "./webhook-subscribe.ts";
import type { TestOptions } from "./webhook-test.ts";

/** `postern webhook …`: dynamic subscriptions (specification sections 2.4 and 4.3). */
export function webhook(program: Command, context: Context): void {
  const group = program
    .command("webhook")
    .description("Subscribe to webhooks without touching config.yaml")
    .addHelpText("after", "\nExample:\n  $ postern webhook subscribe alerts --deliver log");
  defineSubscribe(group, context);
  group
    .command("list")
    .description("List the subscriptions; never shows a secret")
    .addHelpText("after", "\nExample:\n  $ postern webhook list")
    .action(async (_options: CommonOptions, command: Command) =>
      list(command.optsWithGlobals<CommonOptions>(), context),
    );
  group
    .command("remove <name>")
    .description("Delete a subscription; its URL answers 404 from then on")
    .addHelpText("after", "\nExample:\n  $ postern webhook remove alerts")
    .action(async (name: string, _options: CommonOptions, command: Command) =>
      remove(name, command.optsWithGlobals<CommonOptions>(), context),
    );
  defineTest(group, context);
}

function defineTest(group: Command, context: Context): void {
  group
    .command("test <name>")
    .description("Send a signed test event to a subscription of the running gateway, and see what becomes of it")
    .option("--payload <json>", "the event's body (default: a small test object)")
    .option("--wait <seconds>", "how long to watch what becomes of it", parseSeconds, 10)
    .addHelpText("after", `\nExample:\n  $ postern webhook test alerts --payload '{"message":"hello"}'`)
    .action(async (name: string, _options: TestOptions, command: Command) => {
      const { testSubscription } = await import("./webhook-test.ts");
      await testSubscription(name, command.optsWithGlobals<TestOptions>(), context);
    });
}

function defineSubscribe(group: Command, context: Context): void {
  group
    .command("subscribe <name>")
    .description("Make a subscription and print its URL and secret, or update the one of this name")
    .option("--events <list>", "event types to accept, separated by commas (default: all)", parseList)
    .option("--prompt <template>", "prompt, or the message with --deliver-only; {a.b.c} stands for a payload field")
    .option("--filter <json>", "filter, or list of filters, that an event must pass; repeat for more", appendJson)
    .option("--script <path>", "script under <home>/scripts that filters or rewrites the payload")
    .option("--skill <name>", "skill put before the prompt; repeat for alternatives", append)
    .option("--deliver <target>", "where the answer goes (default: log)")
    .option("--deliver-chat-id <id>", "chat, channel or address at the target")
    .option("--deliver-extra <key=value>", "further settings of the target; repeat for more", appendPair)
    .option("--deliver-only", "send the rendered prompt as it is, without an agent")
    .option("--no-deliver-only", "run an agent again, after --deliver-only")
    .option("--description <text>", "what it is for")
    .option("--secret <secret>", "use this secret instead of a generated one; - reads it from standard input")
    .addHelpText(
      "after",
      '\nExample:\n  $ postern webhook subscribe reviews --events pull_request --prompt "Review {pull_request.html_url}"\n' +
        `  $ postern webhook subscribe opened --filter '{"field":"action","in":["opened","reopened"]}' --secret - < secret.txt`,
    )
    .action(async (name: string, _options: SubscribeOptions, command: Command) => {
      const { subscribe } = await import("./webhook-subscribe.ts");
      await subscribe(name, command.optsWithGlobals<SubscribeOptions>(), context);
    });
}

async function list(options: CommonOptions, context: Context): Promise<void> {
  const { readEntries } = await import("../config/subscriptions.ts");
  const { table } = await import("./table.ts");
  const entries = Object.entries(await withSubscriptions(context, options, "read", readEntries));
  const rows = entries.map(([name, entry]) => ({ name, ...shown(entry) }));
  const lines = table(
    ["NAME", "EVENTS", "DELIVER", "DESCRIPTION"],
    rows.map((row) => [row.name, row.events.join(",") || "all", row.deliver, row.description]),
  );
  const none = ['No subscriptions; make one with "postern webhook subscribe NAME"'];
  print(context, options, rows, rows.length === 0 ? none : lines);
}

/** What may be seen of an entry: everything but its secret. */
function shown(entry: unknown) {
  const { events, deliver, description, deliver_only, enabled } = (entry ?? {}) as Record<string, unknown>;
  return {
    events: [events ?? []].flat().map(inWords),
    deliver: deliver === undefined ? "log" : inWords(deliver),
    deliver_only: deliver_only === true,
    enabled: enabled !== false,
    description: typeof description === "string" ? description : "",
  };
}

function inWords(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

async function remove(name: string, options: CommonOptions, context: Context): Promise<void> {
  const { unknownSubscription } = await import("../config/subscriptions.ts");
  const without = (entries: Entries): Entries => {
    if (!Object.hasOwn(entries, name)) throw unknownSubscription(name, Object.keys(entries));
    const { [name]: _removed, ...others } = entries;
    return others;
  };
  await withSubscriptions(context, options, "write", (place) => place.change(without));
  print(context, options, { removed: name }, [`Removed "${name}"`]);
}
