export { config } from "./config.ts";
export { demo } from "./demo.ts";
export { events } from "./events.ts";
export { gateway } from "./gateway.ts";
export { webhook } from "./webhook.ts";
