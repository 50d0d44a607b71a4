import type { Event, HeaderMap, Json, JsonObject } from "../../src/core/types.ts";

/** Headers as a server hands them over: lower-case names, each with its values. */
export function headersOf(values: Record<string, string | string[]>): HeaderMap {
  return new Map(Object.entries(values).map(([name, value]) => [name.toLowerCase(), [value].flat()]));
}

/** An event with the fields that a test is about. */
export function eventOf(fields: Partial<Event> = {}): Event {
  return {
    id: "01890000-0000-7000-8000-000000000000",
    route: "route",
    type: "push",
    typeNames: [fields.type ?? "push"],
    deliveryId: "delivery-1",
    payload: {},
    headers: new Map(),
    body: Buffer.alloc(0),
    receivedAt: 1_732_190_000_000,
    ...fields,
  };
}

/** A payload from a literal, typed as one. */
export function payloadOf(value: Record<string, unknown>): JsonObject {
  return value as Record<string, Json>;
}
