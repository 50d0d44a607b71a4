import type { IncomingMessage, ServerResponse } from "node:http";
import { bodyServer, listen, objectIn, stop } from "./http.ts";
import { answerAs, answerJson, type Fake, type JsonAnswer, type Mode, takes } from "./mode.ts";
import type { ApiSchema, HeardRequest } from "./schema.ts";

/** A request that a fake service heard. */
export interface Heard extends HeardRequest {
  /** The body, when it is a JSON object. */
  readonly json: Readonly<Record<string, unknown>> | undefined;
  /** The body as a form. */
  readonly form: URLSearchParams;
}

/** What every message of a fake has. */
export interface Taken {
  /** What a reader sees, without markup and escapes. */
  readonly text: string;
  /** What was sent of it, as it came: where anything alive would be. */
  readonly raw: string;
}

export interface JsonAnswers {
  readonly ok: JsonAnswer;
  /** The service's own error for "never". With status 200 where it says so in the body. */
  readonly refused: JsonAnswer;
  /** The service's own way to say "later"; where it can name a time, 7 seconds. */
  readonly limited: JsonAnswer;
}

export interface ServiceOptions<Message extends Taken> {
  /** Every request must fit one of each list's descriptions. */
  readonly schemas: readonly (readonly ApiSchema[])[];
  /** Answers what sends nothing (a token, a question who one is), in every mode. `undefined`: it is no such request. */
  readonly aside?: (heard: Heard) => JsonAnswer | undefined;
  /** Answers a look at what was taken, which each mode spoils as it does a message. `undefined`: it is no such request. */
  readonly looks?: (heard: Heard, messages: readonly Message[]) => JsonAnswers | undefined;
  /** The message, or what the service answers to a wrong one (a token it does not know, a chat that is not there). */
  readonly read: (heard: Heard, id: number) => Message | { readonly wrong: JsonAnswer };
  /** What the service knows a repeated message by; the first one is kept and answered again. */
  readonly keyOf?: (message: Message) => string | undefined;
  readonly answers: (message: Message) => JsonAnswers;
  /** What every answer takes from its request, for example an id. */
  readonly answering?: (answer: JsonAnswer, heard: Heard) => JsonAnswer;
  /** The service's own answer to a request that it does not understand. */
  readonly misunderstood: (problems: readonly string[]) => JsonAnswer;
}

export interface FakeService<Message extends Taken> extends Fake<Message> {
  readonly baseUrl: string;
  /** What was wrong with requests, by the descriptions of the service's API. */
  readonly mismatches: readonly string[];
  /** Every request, also those that send nothing. */
  readonly heard: readonly Heard[];
  /** Set, this is the answer in the modes `refused` and `limited`. */
  answer: JsonAnswer | undefined;
}

/** A service on a free port of 127.0.0.1 that compares each request with descriptions of its API. */
export async function startService<Message extends Taken>(
  options: ServiceOptions<Message>,
): Promise<FakeService<Message>> {
  const messages: Message[] = [];
  const upcoming: Mode[] = [];
  const heard: Heard[] = [];
  const mismatches: string[] = [];
  const server = bodyServer((request, body, response) => {
    const one = hear(request, body);
    heard.push(one);
    const problems = options.schemas.flatMap((alternatives) => problemsOf(alternatives, one));
    if (problems.length > 0) {
      mismatches.push(...problems);
      return answerJson(response, options.misunderstood(problems));
    }
    const aside = options.aside?.(one);
    if (aside !== undefined) return answerJson(response, aside);
    const look = options.looks?.(one, messages);
    if (look !== undefined) return answer(upcoming.shift() ?? fake.mode, response, look);
    fake.tries += 1;
    const message = options.read(one, messages.length + 1);
    const answering = (answer: JsonAnswer) => options.answering?.(answer, one) ?? answer;
    if ("wrong" in message) return answerJson(response, answering(message.wrong));
    const mode = upcoming.shift() ?? fake.mode;
    const key = options.keyOf?.(message);
    const known = key === undefined ? undefined : messages.find((earlier) => options.keyOf?.(earlier) === key);
    if (takes(mode) && known === undefined) messages.push(message);
    answer(mode, response, options.answers(known ?? message), answering);
  });
  const asTheyAre = (answer: JsonAnswer) => answer;
  const answer = (mode: Mode, response: ServerResponse, { ok, ...answers }: JsonAnswers, answering = asTheyAre) => {
    const { refused, limited } = fake.answer ? { refused: fake.answer, limited: fake.answer } : answers;
    answerAs(mode, response, { ok: answering(ok), refused: answering(refused), limited: answering(limited) });
  };
  const port = await listen(server);
  const fake = {
    baseUrl: `http://127.0.0.1:${port}`,
    messages,
    upcoming,
    heard,
    mismatches,
    mode: "ok" as Mode,
    tries: 0,
    answer: undefined as JsonAnswer | undefined,
    close: () => stop(server),
  };
  return fake;
}

function hear(request: IncomingMessage, body: string): Heard {
  const headers = Object.entries(request.headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value[0] : value,
  ]);
  return {
    method: request.method ?? "",
    url: new URL(request.url ?? "/", "http://127.0.0.1"),
    headers: Object.fromEntries(headers) as Heard["headers"],
    body,
    json: objectIn(body),
    form: new URLSearchParams(body),
  };
}

/** Nothing when one of the descriptions fits (a service may have several doors), else what the last one says. */
function problemsOf(alternatives: readonly ApiSchema[], heard: Heard): readonly string[] {
  let problems: readonly string[] = [];
  for (const schema of alternatives) {
    problems = schema.problems(heard);
    if (problems.length === 0) return [];
  }
  return problems;
}
