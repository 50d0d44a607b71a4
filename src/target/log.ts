import { plainText } from "./neutralise.ts";
import type { Target } from "./target.ts";

/** Writes the message to the gateway's own log, at level info. Always there: it needs no settings and no address. */
export const log: Target = {
  name: "log",
  isPlatform: false,
  settings: {},
  address: {},
  limit: { unit: "utf16", max: 2 ** 28, parts: 1 },
  async send(part, _settings, tools) {
    // The line may be read at a terminal, where control characters would do more than show.
    const text = plainText(part.text);
    tools.log.info({ target: "log", route: part.route, event: part.eventType, text }, "Delivered to the log");
    return {};
  },
};
