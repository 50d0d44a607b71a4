import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";

export interface MailServer {
  readonly port: number;
  close(): void;
}

/**
 * A mail server on 127.0.0.1 that takes everything at once, without TLS, and checks nothing: the fake of the tests lets every
 * client wait for a tenth of a second first. `take` gets the first recipient and the raw mail.
 */
export async function startMailServer(take: (to: string, mail: string) => void): Promise<MailServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    socket.setNoDelay(true);
    converse(socket, take);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

const endOfMail = "\r\n.\r\n";

function converse(socket: Socket, take: (to: string, mail: string) => void): void {
  let text = "";
  let to = "";
  let isMail = false;
  const answer = (line: string): string => {
    const verb = line.slice(0, 4).toUpperCase();
    if (verb === "RCPT") to ||= /<([^>]*)>/.exec(line)?.[1] ?? "";
    if (verb === "DATA") isMail = true;
    if (verb === "QUIT") return "221 Bye";
    return isMail ? "354 Go on" : "250 Ok";
  };
  socket.write("220 bench ESMTP\r\n");
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    for (;;) {
      const mark = isMail ? endOfMail : "\r\n";
      const end = text.indexOf(mark);
      if (end < 0) return;
      const piece = text.slice(0, end);
      text = text.slice(end + mark.length);
      if (isMail) {
        isMail = false;
        take(to, piece);
        to = "";
        socket.write("250 Taken\r\n");
      } else {
        socket.write(`${answer(piece)}\r\n`);
      }
    }
  });
}
