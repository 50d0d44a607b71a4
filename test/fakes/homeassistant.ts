import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface HaNotification extends Taken {
  /** Such as "notify.mobile_app_phone". */
  readonly action: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** As it is shown. */
  readonly title: string | undefined;
}

export interface FakeHomeAssistant extends FakeService<HaNotification> {
  readonly token: string;
}

const api = ownSchema("home-assistant");
const webActions = ["persistent_notification.create", "notify.persistent_notification"];
const actions = ["notify.mobile_app_phone", "notify.family", "notify.send_message", ...webActions];
const entities = ["notify.kitchen"];

/** Home Assistant with a telephone, a group, a notify entity, and its web interface. */
export async function startFakeHomeAssistant(token = "fakeTokenOfHomeAssistant"): Promise<FakeHomeAssistant> {
  const service = await startService<HaNotification>({
    schemas: [[api]],
    aside: (heard) => (heard.method === "GET" ? answerQuestion(heard, token) : undefined),
    read: (heard) => {
      const wrong = fault(heard, token);
      return wrong === undefined ? notificationIn(heard) : { wrong };
    },
    answers: () => ({
      ok: { status: 200, body: [] },
      refused: { status: 400, body: { message: "extra keys not allowed" } },
      // Of the proxy before it: it has no limits of its own.
      limited: { status: 429, headers: { "retry-after": "7" }, text: "Too Many Requests" },
    }),
    misunderstood: (problems) => ({ status: 400, body: { message: problems.join("; ") } }),
  });
  return Object.assign(service, { token });
}

function unauthorized({ headers }: Heard, token: string): JsonAnswer | undefined {
  return headers.authorization === `Bearer ${token}` ? undefined : { status: 401, text: "401: Unauthorized" };
}

function answerQuestion(heard: Heard, token: string): JsonAnswer {
  const wrong = unauthorized(heard, token);
  if (wrong !== undefined) return wrong;
  const { pathname } = heard.url;
  if (pathname === "/api/") return { status: 200, body: { message: "API running." } };
  if (pathname === "/api/services") return { status: 200, body: domains() };
  const isThere = entities.some((entity) => pathname === `/api/states/${entity}`);
  return isThere
    ? { status: 200, body: { state: "unknown" } }
    : { status: 404, body: { message: "Entity not found." } };
}

function domains() {
  const names = [...new Set(actions.map((action) => action.split(".")[0]))];
  return names.map((domain) => {
    const own = actions.filter((action) => action.startsWith(`${domain}.`));
    return { domain, services: Object.fromEntries(own.map((action) => [action.split(".")[1], { fields: {} }])) };
  });
}

function fault(heard: Heard, token: string): JsonAnswer | undefined {
  const wrong = unauthorized(heard, token);
  if (wrong !== undefined) return wrong;
  const { json = {} } = heard;
  const action = actionIn(heard);
  const isMissing = action === "notify.send_message" && !entities.includes(String(json.entity_id));
  if (!actions.includes(action) || isMissing) return { status: 400, body: { message: "Service not found" } };
  // What brings a notification to a telephone takes no more; the web interface has no limit.
  if (webActions.includes(action)) return undefined;
  const size = Buffer.byteLength(String(json.message));
  return size > 4096 ? { status: 400, body: { message: "message is too long" } } : undefined;
}

function actionIn({ url }: Heard): string {
  return url.pathname.replace("/api/services/", "").replace("/", ".");
}

function notificationIn(heard: Heard): HaNotification {
  const { json = {} } = heard;
  const raw = String(json.message);
  const action = actionIn(heard);
  const rendered = render(action, raw);
  // Only the web interface reads Markdown.
  const text = webActions.includes(action) ? rendered.replaceAll(/\\([!-/:-@[-`{-~])/g, "$1") : rendered;
  const title = json.title === undefined ? undefined : render(action, String(json.title));
  return { action, body: json, title, text, raw };
}

/** Notifiers take message and title for Jinja templates; entities and the web interface's own action do not. */
function render(action: string, template: string): string {
  const isTemplate = action.startsWith("notify.") && action !== "notify.send_message";
  return isTemplate ? template.replaceAll(/\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}/gs, "(rendered)") : template;
}
