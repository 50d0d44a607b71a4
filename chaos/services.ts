import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startFakeGithub } from "../test/fakes/github.ts";
import { startFakeTelegram } from "../test/fakes/telegram.ts";
import { moods, openRoad, type RoadOptions, type Service } from "./road.ts";

/** What a gateway needs to know of its services. */
export interface Access {
  readonly telegram: { readonly baseUrl: string; readonly token: string };
  /** With it the real `gh` talks to the fake GitHub. */
  readonly env: Readonly<Record<string, string>>;
}

/** The services of one round, with a road of its own for each gateway. */
export interface Services {
  readonly access: readonly Access[];
  close(): Promise<void>;
}

/** Starts the services. `folder` is for the socket files of `gh`; its path may have 80 characters. */
export async function openServices(folder: string, count: number, options: RoadOptions): Promise<Services> {
  const [telegram, github] = await Promise.all([startFakeTelegram(), startFakeGithub()]);
  const chat = telegramService(Number(new URL(telegram.baseUrl).port));
  const host = githubService(join(github.env.GH_CONFIG_DIR ?? "", "s"));
  const roads: { close(): Promise<void> }[] = [];
  const access: Access[] = [];
  for (let gateway = 0; gateway < count; gateway += 1) {
    const config = join(folder, `gh-${gateway}`);
    await mkdir(config, { recursive: true });
    await writeFile(join(config, "config.yml"), `http_unix_socket: ${join(config, "s")}\n`);
    const toChat = await openRoad(chat, gateway, options);
    roads.push(toChat, await openRoad(host, gateway, options, join(config, "s")));
    access.push({
      telegram: { baseUrl: `http://127.0.0.1:${toChat.port}`, token: telegram.token },
      env: { GH_CONFIG_DIR: config, GH_TOKEN: github.token },
    });
  }
  return {
    access,
    close: async () => void (await Promise.all([...roads, telegram, github].map((each) => each.close()))),
  };
}

function telegramService(port: number): Service {
  return {
    address: { port },
    read: (_request, body) => {
      const { chat_id: chat, text } = JSON.parse(body) as { chat_id: string | number; text: string };
      return { place: `telegram ${chat}`, text };
    },
    limited: {
      status: 429,
      headers: { "content-type": "application/json", "retry-after": "1" },
      body: {
        ...{ ok: false, error_code: 429, description: "Too Many Requests: retry after 1" },
        parameters: { retry_after: 1 },
      },
    },
    moods: moods.telegram,
  };
}

function githubService(socketPath: string): Service {
  return {
    address: { socketPath },
    read: ({ method, url = "" }, body) => {
      const [, repo = "", number = ""] = /^\/repos\/([^/]+\/[^/]+)\/issues\/(\d+)\/comments/.exec(url) ?? [];
      const place = `github ${repo}#${number}`;
      if (method !== "POST") return { place };
      const { body: text } = JSON.parse(body) as { body: string };
      // Readers do not see the marker at the end.
      return { place, text: text.slice(0, text.lastIndexOf("<!--")).trimEnd() };
    },
    limited: { status: 403, headers: { "content-type": "application/json", "retry-after": "1" }, body: {} },
    moods: moods.github,
  };
}
