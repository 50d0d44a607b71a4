import { exchange, HttpFailure } from "../../lib/http.ts";
import { localUrl } from "../url.ts";
import { type Check, findings } from "./finding.ts";

const { ok, warning } = findings("gateway");

/** Whether a gateway answers where the configuration says. One that does not run is no fault: somebody may have stopped it. */
export const checkGateway: Check = async ({ config }) => {
  if (!config?.webhook.enabled) return [];
  if (config.webhook.port === 0) return [ok("Its port is chosen when it starts, so it cannot be asked")];
  const url = `${localUrl(config.webhook)}/health`;
  try {
    const { status, text } = await exchange(url, { method: "GET", timeoutMs: 3_000, maxBytes: 10_000 });
    if (status === 200 && isOurs(text)) return [ok(`It answers at ${url}`)];
    const next = `Stop the other program, or set another "platforms.webhook.port"`;
    return [warning(`Another program answers at ${url}`, next)];
  } catch (error) {
    if (!(error instanceof HttpFailure)) throw error;
    if (error.sent === "no") return [ok(`It does not run; start it with "postern gateway run"`)];
    return [warning(`Something listens at ${url}, but does not answer: ${error.message}`, "Look at the gateway's log")];
  }
};

function isOurs(text: string): boolean {
  try {
    return (JSON.parse(text) as { platform?: unknown }).platform === "webhook";
  } catch {
    return false;
  }
}
