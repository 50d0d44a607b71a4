import { isObject } from "../core/json.ts";
import { type Answer, Conversation, textOf } from "./conversation.ts";
import { format } from "./fields.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { cardOf, cardWording } from "./teams-card.ts";
import { longerWording, worded } from "./wording.ts";

const settings: Target["settings"] = {
  webhook_url: {
    kind: "secret_url",
    help: 'Address of a workflow "When a Teams webhook request is received"; it posts to its one channel or chat',
    env: ["TEAMS_WEBHOOK_URL"],
    required: true,
  },
};

const json = (wording: string) => JSON.stringify(cardOf(wording));
const longestCard = longerWording(
  { markdown: (text) => json(cardWording.markdown(text)), plain: (text) => json(cardWording.plain(text)) },
  "bytes",
);

/**
 * Microsoft Teams through a workflow's webhook, as an Adaptive Card
 * (https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using). The workflow says
 * that it has begun, not that it posted, and knows nothing of repeats.
 */
export function createTeams(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000 } = options;
  return {
    name: "teams",
    isPlatform: true,
    settings,
    address: { format },
    // 28 KB are allowed, of which Teams takes some for itself: posts of more than 21 KB were seen to fail.
    limit: { unit: "bytes", max: 20_000, parts: 10, numberedFrom: 3, rendered: longestCard },
    markup: "Adaptive Card: bold, italic, links, titles, code",
    retried: "as for all",
    repeats: "doubled",
    pace: { overall: { count: 4, everyMs: 1000 } },
    send: (part, values, tools) => send(part, values, tools, timeoutMs),
    // It can only be asked to post.
    check: async () => ["A workflow's address cannot be tried without posting"],
  };
}

/** The target of the registry. */
export const teams: Target = createTeams();

async function send(part: Part, values: SettingValues, tools: TargetTools, timeoutMs: number): Promise<Receipt> {
  const url = String(values.webhook_url);
  const talk = new Conversation({
    ...{ service: "Teams", action: "Cannot send to Teams", addressSetting: "webhook_url" },
    ...{ secrets: secretsIn(url), timeoutMs, signal: tools.signal },
  });
  const answer = await talk.ask({ method: "POST", url, json: cardOf(worded(part, cardWording)), sends: true });
  talk.expectSuccess(answer, wordsIn(answer), advice);
  if (!isAccepted(answer)) throw talk.notAnAnswer(answer);
  return { reference: answer.headers.get("x-ms-workflow-run-id") ?? "accepted by the workflow, which gives no id" };
}

function secretsIn(url: string): string[] {
  const signature = URL.parse(url)?.searchParams.get("sig");
  return [url, ...(signature ? [signature, encodeURIComponent(signature)] : [])];
}

const copied = 'copy the workflow\'s address again into "webhook_url"';

const advice: Readonly<Record<number, string>> = {
  400: "see whether the workflow is turned on and takes Adaptive Cards",
  401: copied,
  403: copied,
  404: "see whether the workflow still is there",
  410: "see whether the workflow still is there",
  413: "the card is too large",
};

function wordsIn({ json }: Answer): string | undefined {
  const { error = null } = json ?? {};
  return isObject(error) ? (textOf(error.message) ?? textOf(error.code)) : undefined;
}

/** 202 without a word; a workflow that answers by itself, and the connectors of old, say 200 and next to nothing. */
function isAccepted({ status, text, headers }: Answer): boolean {
  if (headers.get("content-type")?.includes("html")) return false;
  return status === 202 || /^(?:1|ok)?$/i.test(text.trim());
}
