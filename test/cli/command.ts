import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough } from "node:stream";
import type { TestContext } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { runCli } from "../../src/cli/cli.ts";
import type { Context, Terminal } from "../../src/cli/context.ts";
import { mainPath } from "../tools/program.ts";

export interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line in this process, on a home. */
export async function run(
  home: { readonly folder: string },
  args: readonly string[],
  changes: Partial<Context> = {},
): Promise<Result> {
  const written = { out: "", err: "" };
  const context: Context = {
    env: { POSTERN_HOME: home.folder },
    out(text) {
      written.out += text;
    },
    err(text) {
      written.err += text;
    },
    terminal: () => undefined,
    isHeard: () => true,
    readInput: async () => "",
    async *input() {},
    self: [process.execPath, mainPath],
    startGateway: async (load) => {
      await load();
      throw new Error("This test starts no gateway");
    },
    onStop() {},
    onReload() {},
    setExitCode() {},
    ...changes,
  };
  const code = await runCli(args, context);
  return { code, ...written };
}

/** The result of a command that ran with `--json`. */
export async function runJson<Value>(
  home: { readonly folder: string },
  args: readonly string[],
  changes?: Partial<Context>,
): Promise<{ readonly code: number; readonly value: Value; readonly err: string }> {
  const { code, out, err } = await run(home, [...args, "--json"], changes);
  return { code, value: JSON.parse(out) as Value, err };
}

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Stands in for a gateway: keeps what it receives and answers as told. */
export async function fakeGateway(t: TestContext, status = 202, reply: unknown = { status: "accepted" }) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    received.push({ path: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks) });
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(reply));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, received };
}

/** Keys as a terminal sends them. */
export const keys = { enter: "\r", down: "\u001b[B", back: "\u007f", interrupt: "\u0003" } as const;

/** A question, by some of its words, and what is typed when it is asked. */
export type Typed = readonly [question: string, typed: string];

/**
 * Looks for the next question in what a terminal shows and answers it by `type`. The questions must come in this order; the
 * same words in an answered question, which is drawn again, do not count.
 */
export function answering(script: readonly Typed[], type: (text: string) => void) {
  const left = [...script];
  let unread = "";
  let shown = "";
  return {
    left,
    shown: () => shown,
    show(chunk: string) {
      const text = stripVTControlCharacters(chunk);
      shown += text;
      unread += text;
      const [question, typed] = left[0] ?? [];
      if (question === undefined || typed === undefined || !asked(question).test(unread)) return;
      left.shift();
      unread = "";
      // Only when it is drawn as a whole is it being listened to.
      setTimeout(() => type(typed), 20);
    },
  };
}

/** A question that is open, or open again because the answer would not do. */
function asked(question: string): RegExp {
  return new RegExp(`[◆▲]  ${question.replaceAll(/[?(]/g, "\\$&")}`);
}

/** A terminal at which somebody types, in this process. */
export function typist(script: readonly Typed[]) {
  const input = new PassThrough();
  const output = new PassThrough();
  const answers = answering(script, (text) => void input.write(text));
  output.on("data", (chunk: Buffer) => answers.show(chunk.toString()));
  const terminal: Terminal = { input, output };
  return { ...answers, terminal: () => terminal };
}
