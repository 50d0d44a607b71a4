import type { Outcome } from "../agent/agent.ts";
import type { Event, HeaderMap } from "../core/types.ts";
import type { NewEvent, RunResult } from "../store/store.ts";

/** An event as the store keeps it. */
export function eventRow(event: Event): NewEvent {
  return {
    id: event.id,
    route: event.route,
    type: event.type,
    deliveryId: event.deliveryId,
    receivedAt: event.receivedAt,
    headers: JSON.stringify(headersWorthKeeping(event.headers)),
    body: event.body,
  };
}

/** Headers whose value may be, or lead to, a credential. */
const secretHeader = /authorization|cookie|token|signature|secret|password|passcode|credential|api-?key|hmac/;

function headersWorthKeeping(headers: HeaderMap): Record<string, string> {
  const kept = [...headers].filter(([name]) => !secretHeader.test(name));
  return Object.fromEntries(kept.map(([name, values]) => [name, values.join(", ")]));
}

/** How a run ended, as the store keeps it. */
export function resultRow(outcome: Outcome): RunResult {
  return {
    outcome: outcome.status,
    reason: outcome.status === "completed" ? null : outcome.reason,
    answer: outcome.status === "completed" ? outcome.answer : null,
    transcript: JSON.stringify(outcome.transcript),
    inputTokens: outcome.usage?.inputTokens ?? null,
    outputTokens: outcome.usage?.outputTokens ?? null,
  };
}
