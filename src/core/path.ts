import { isList, isObject } from "./json.ts";
import type { Json } from "./types.ts";

/** Stands for "nothing there"; `null` is a value that is there. */
export const absent = Symbol("absent");

/**
 * The value at a dotted path such as `pull_request.labels.0.name`: own properties and list indexes only, so that
 * `constructor` and `__proto__` are absent unless the sender wrote them.
 */
export function valueAt(value: Json, path: string): Json | typeof absent {
  return valueAtKeys(value, path.split("."));
}

/** `valueAt` for a path that was split once and is looked up often. */
export function valueAtKeys(value: Json, keys: readonly string[]): Json | typeof absent {
  let here: Json = value;
  for (const key of keys) {
    if (isList(here)) {
      if (!/^(0|[1-9]\d{0,8})$/.test(key)) return absent;
      const item: Json | undefined = here[Number(key)];
      if (item === undefined) return absent;
      here = item;
    } else if (isObject(here) && Object.hasOwn(here, key)) {
      here = here[key] as Json;
    } else {
      return absent;
    }
  }
  return here;
}
