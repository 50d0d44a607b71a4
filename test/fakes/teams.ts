import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface TeamsCard extends Taken {
  readonly blocks: readonly TextBlock[];
  readonly bytes: number;
}

export interface TextBlock {
  readonly type: "TextBlock";
  readonly text: string;
  readonly spacing?: string;
  readonly fontType?: string;
  readonly weight?: string;
}

export interface FakeTeams extends FakeService<TeamsCard> {
  readonly webhookUrl: string;
}

const path = "/workflows/0123456789abcdef/triggers/manual/paths/invoke";
const signature = "fakeSignature_of-theWorkflow";
const mostBytes = 28_672;

/** The webhook of one workflow of Teams. */
export async function startFakeTeams(): Promise<FakeTeams> {
  const service = await startService<TeamsCard>({
    schemas: [[ownSchema("teams-workflow")]],
    read: (heard) => read(heard),
    answers: () => ({
      ok: { status: 202, headers: { "x-ms-workflow-run-id": "0858fakeRun" }, text: "" },
      refused: { status: 404, body: { error: { code: "WorkflowNotFound", message: "The workflow was not found." } } },
      limited: { status: 429, headers: { "retry-after": "7" }, body: { error: { code: "TooManyRequests" } } },
    }),
    misunderstood: () => ({ status: 400, body: { error: { code: "TriggerInputSchemaMismatch", message: "Invalid" } } }),
  });
  const query = `api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=${signature}`;
  return Object.assign(service, { webhookUrl: `${service.baseUrl}${path}?${query}` });
}

function read({ url, json = {}, body }: Heard): TeamsCard | { wrong: { status: number; body: unknown } } {
  if (url.pathname !== path || url.searchParams.get("sig") !== signature)
    return { wrong: { status: 401, body: { error: { code: "DirectApiInvalidAuthorization", message: "No." } } } };
  const bytes = Buffer.byteLength(body);
  if (bytes > mostBytes) return { wrong: { status: 413, body: { error: { code: "RequestEntityTooLarge" } } } };
  const [attachment] = json.attachments as { content: { body: TextBlock[] } }[];
  const blocks = attachment?.content.body ?? [];
  const raw = linesOf(blocks).join("\n");
  return { blocks, bytes, raw, text: shown(raw) };
}

/** A block stands a blank line below the one before, or right below it. */
function linesOf(blocks: readonly TextBlock[]): string[] {
  return blocks.flatMap(({ text, spacing }, index) => (index > 0 && spacing !== "None" ? ["", text] : [text]));
}

function shown(raw: string): string {
  const text = raw.replaceAll("\u200b", "").replaceAll("\u00a0", " ");
  return text.replaceAll(/\\([!-/:-@[-`{-~])/g, "$1");
}
