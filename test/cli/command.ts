import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { runCli } from "../../src/cli/cli.ts";
import type { Context } from "../../src/cli/context.ts";
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
