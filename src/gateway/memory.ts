import type { Store } from "../store/store.ts";
import type { Memory } from "../target/target.ts";

/** What targets remember, as documents of the store: after a restart, and for every gateway on it. */
export function storeMemory(store: Pick<Store, "readDocument" | "writeDocument">): Memory {
  const nothing = { version: 0, text: "" };
  return {
    read: async (name) => (await store.readDocument({ name: documentName(name) })) ?? nothing,
    write: (name, text, seen) => store.writeDocument({ name: documentName(name), seen, text }),
  };
}

function documentName(name: string): string {
  return `target ${name}`;
}
