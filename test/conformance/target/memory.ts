import type { Memory } from "../../../src/target/target.ts";

/** What a target remembers, as long as the test. */
export function makeMemory(): Memory {
  const kept = new Map<string, { version: number; text: string }>();
  const nothing = { version: 0, text: "" };
  return {
    read: async (name) => kept.get(name) ?? nothing,
    write: async (name, text, seen) => {
      if ((kept.get(name) ?? nothing).version !== seen) return false;
      kept.set(name, { version: seen + 1, text });
      return true;
    },
  };
}
