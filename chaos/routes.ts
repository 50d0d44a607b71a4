import { splitText } from "../src/core/split.ts";
import * as targets from "../src/target/registry.ts";

/** One piece of text at one place: what an event comes to, and what the fakes count. */
export interface Piece {
  /** `telegram 1000007`, or `github owner/name#7`. */
  readonly place: string;
  readonly text: string;
}

/** What an event of a round holds, as far as its pieces need it. */
export interface Numbered {
  /** Within its round. */
  readonly n: number;
  readonly round: number;
  readonly chat: string;
}

export interface ChaosRoute {
  /** As in a configuration. */
  readonly config: object;
  /** Sent while the sender waits. */
  readonly isDirect: boolean;
  readonly lines: number;
  readonly places: (event: Numbered) => readonly string[];
  /** Runs at the same time on all gateways together. */
  readonly maxConcurrent?: number;
}

/** How the harness's messages are retried: soon, and so often that no fault exhausts the tries. */
const retry = { tries: 100, first_delay: "50ms", longest_delay: "1s" };
const telegram = { prompt: "{text}", deliver: "telegram", deliver_extra: { chat_id: "{chat}" }, retry };
const chatOf = ({ chat }: Numbered) => [`telegram ${chat}`];

/** The routes of every gateway. */
export const chaosRoutes = {
  short: { config: telegram, isDirect: false, lines: 1, places: chatOf },
  /** Three parts. */
  long: { config: telegram, isDirect: false, lines: 330, places: chatOf },
  both: {
    config: {
      ...{ prompt: "{text}", retry },
      deliver: [
        { to: "telegram", chat_id: "{chat}" },
        { to: "telegram", chat_id: "-{chat}" },
      ],
    },
    isDirect: false,
    lines: 1,
    places: ({ chat }) => [`telegram ${chat}`, `telegram -${chat}`],
  },
  few: { config: { ...telegram, max_concurrent: 2 }, isDirect: false, lines: 1, places: chatOf, maxConcurrent: 2 },
  direct: { config: { ...telegram, deliver_only: true }, isDirect: true, lines: 1, places: chatOf },
  review: {
    config: {
      ...{ prompt: "{text}", retry, deliver: "github_comment" },
      deliver_extra: { repo: "owner/name", pr_number: "{n}" },
    },
    isDirect: false,
    lines: 1,
    places: ({ n }) => [`github owner/name#${n}`],
  },
} as const satisfies Record<string, ChaosRoute>;

export type RouteName = keyof typeof chaosRoutes;

export function routeNamed(name: RouteName): ChaosRoute {
  return chaosRoutes[name];
}

/** What an agent answers to an event, line by line with its number, so that every part of it can be told from every other. */
export function textOf(route: RouteName, { n, round }: Numbered): string {
  const lines = Array.from(
    { length: chaosRoutes[route].lines },
    (_, line) => `event ${n} of round ${round}, line ${line}`,
  );
  return lines.join("\n");
}

/** All that must arrive for an event. */
export function piecesOf(route: RouteName, event: Numbered): Piece[] {
  const text = textOf(route, event);
  return chaosRoutes[route].places(event).flatMap((place) => {
    const target = place.startsWith("github") ? targets.github_comment : targets.telegram;
    return splitText(text, target.limit).map((part) => ({ place, text: part }));
  });
}

export function keyOf({ place, text }: Piece): string {
  return `${place}\n${text}`;
}
