import { isObject, jsonHead } from "../core/json.ts";
import { headerNames, wireText } from "../core/names.ts";
import { absent, valueAtKeys } from "../core/path.ts";
import type { Event } from "../core/types.ts";
import type { Found } from "./operators.ts";

/** A field path of a filter, ready to be looked up. */
export interface Field {
  /** Every value the field stands for: more than one only for an event type with several names. */
  read(event: Event): readonly Found[];
  /** The value as JSON of at most 200 characters, `absent`, or `[hidden]` for a header that may hold a secret. */
  show(event: Event): string;
}

const secretHeader = /auth|token|secret|signature|cookie|key|passw/i;

/**
 * Reads a field path (specification section 2.3): `event` and `event_type` are the resolved type, `headers.<Name>` a request
 * header, `payload.x` what is inside the payload's own `payload` object where it has one, and all else a path in the payload.
 * A text says what is wrong with the path.
 */
export function compileField(path: string): Field | string {
  if (path.split(".").includes("")) return `The field "${path}" has an empty name between its dots`;
  if (path === "event" || path === "event_type") return field((event) => event.typeNames);
  if (path.startsWith("headers.")) return headerField(path.slice("headers.".length));
  const keys = path.split(".");
  if (keys[0] !== "payload" || keys.length === 1) return field(({ payload }) => [valueAtKeys(payload, keys)]);
  const inner = keys.slice(1);
  return field(({ payload }) => [valueAtKeys(hasOwnPayload(payload) ? payload.payload : payload, inner)]);
}

function hasOwnPayload(payload: Event["payload"]): payload is { readonly payload: Event["payload"] } {
  return Object.hasOwn(payload, "payload") && isObject(payload.payload);
}

function headerField(name: string): Field {
  const names = headerNames(name);
  const read = ({ headers }: Event): readonly Found[] => {
    const values = names.map((candidate) => headers.get(candidate)).filter((list) => list !== undefined);
    const texts = values.map((list) => wireText(list.join(", ")));
    return [texts.find((text) => text !== "") ?? texts[0] ?? absent];
  };
  return secretHeader.test(name)
    ? { read, show: (event) => (read(event)[0] === absent ? "absent" : "[hidden]") }
    : field(read);
}

function field(read: Field["read"]): Field {
  return {
    read,
    show(event) {
      const value = read(event)[0] ?? absent;
      return value === absent ? "absent" : jsonHead(value, { max: 200 });
    },
  };
}
