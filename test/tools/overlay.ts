import type { TestContext } from "node:test";
import type { Target } from "../../src/target/target.ts";
import { telegram } from "../../src/target/telegram.ts";

/** Makes Telegram another kind of target until the test ends: as if its service found earlier messages, for example. */
export function overlayTelegram(t: TestContext, parts: Partial<Target>): void {
  const before = Object.getOwnPropertyDescriptors(telegram);
  t.after(() => {
    for (const name of Object.keys(parts)) {
      const descriptor = (before as Record<string, PropertyDescriptor>)[name];
      if (descriptor) Object.defineProperty(telegram, name, descriptor);
      else Reflect.deleteProperty(telegram, name);
    }
  });
  Object.assign(telegram, parts);
}
