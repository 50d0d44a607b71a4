import type { AddressInfo } from "node:net";

/** One message as the catcher took it. */
export interface CaughtMail {
  readonly to: readonly string[];
  /** Headers and body as they came over the wire. */
  readonly source: string;
}

export interface MailCatcher {
  readonly port: number;
  /** Fulfils with the first mail that arrives. */
  readonly first: Promise<CaughtMail>;
  close(): Promise<void>;
}

/** A mail server on loopback that takes every message and keeps the first one for show. */
export async function startMailCatcher(): Promise<MailCatcher> {
  const { SMTPServer } = await import("smtp-server");
  const first = Promise.withResolvers<CaughtMail>();
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS", "AUTH"],
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const to = session.envelope.rcptTo.map(({ address }) => address);
        first.resolve({ to, source: Buffer.concat(chunks).toString("utf8") });
        done();
      });
    },
  });
  const listening = Promise.withResolvers<void>();
  server.on("error", listening.reject);
  server.listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  return {
    port: (server.server.address() as AddressInfo).port,
    first: first.promise,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
