import assert from "node:assert/strict";
import { test } from "node:test";
import { type FakeTelegram, startFakeTelegram } from "../fakes/telegram.ts";
import { until } from "../tools/wait.ts";
import { type Block, blocksOf, pages } from "./blocks.ts";
import { openTerminal, replay, type Terminal } from "./session.ts";

/*
 * The sessions of this page share a Telegram that is not real. Behind "session", `telegram=refused` and the like say what it
 * does from then on, and `until=done` that the session begins when no event is under way any more.
 */

const sessions = blocksOf(pages.events).filter(({ kind }) => kind === "session");

test("the commands of docs/events.md print what the page shows", async (t) => {
  const telegram = await startFakeTelegram();
  t.after(() => telegram.close());
  const { baseUrl: base_url, token } = telegram;
  const terminal = await openTerminal(t, { telegram: { enabled: true, token, base_url, home_channel: "-100123" } });
  for (const session of sessions) {
    await prepare(session, telegram, terminal);
    await replay(terminal, session);
  }
  // What could be delivered was, and once.
  assert.deepEqual(
    telegram.messages.map(({ text }) => text),
    ["Explain: disk full on db-1"],
  );
});

async function prepare({ words }: Block, telegram: FakeTelegram, terminal: Terminal): Promise<void> {
  for (const [name, value] of words.map((word) => word.split("="))) {
    if (name === "telegram") behave(telegram, value);
    else if (name === "until") await until("the end of all events", () => areAll(value, terminal));
    else throw new Error(`Nobody knows the word "${name}"`);
  }
}

/** Limited, it asks for more time than the page takes. */
function behave(telegram: FakeTelegram, mode: string | undefined): void {
  assert.ok(mode === "ok" || mode === "refused" || mode === "limited");
  const description = "Too Many Requests: retry after 600";
  const body = { ok: false, error_code: 429, description, parameters: { retry_after: 600 } };
  telegram.mode = mode;
  telegram.answer = mode === "limited" ? { status: 429, body } : undefined;
}

async function areAll(state: string | undefined, terminal: Terminal): Promise<boolean> {
  const events = JSON.parse(await terminal.type("postern events list --json")) as { state: string }[];
  return events.every((event) => event.state === state || event.state === "ignored");
}
