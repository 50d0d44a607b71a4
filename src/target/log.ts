import { DeliveryError } from "../core/errors.ts";
import { plainText } from "./neutralise.ts";
import type { Target } from "./target.ts";

/** Writes the message to the gateway's own log, at level info. Always there: it needs no settings and no address. */
export const log: Target = {
  name: "log",
  isPlatform: false,
  settings: {},
  address: {},
  limit: { unit: "utf16", max: 2 ** 28, parts: 1 },
  markup: "none: the text as it is",
  retried: "when nobody reads the log",
  repeats: "doubled",
  async send(part, _settings, tools) {
    // The line may be read at a terminal, where control characters would do more than show.
    const text = plainText(part.text);
    tools.log.info({ target: "log", route: part.route, event: part.eventType, text }, "Delivered to the log");
    // Only what is written counts as delivered.
    await tools.log.flush().catch((cause: unknown) => {
      throw new DeliveryError("The log cannot be written; see that somebody reads the gateway's output", {
        sent: "maybe",
        cause,
      });
    });
    return {};
  },
  check: async () => ["What it gets is written to the gateway's own log"],
};
