export { config } from "./config.ts";
export { demo } from "./demo.ts";
export { doctor } from "./doctor.ts";
export { events } from "./events.ts";
export { gateway } from "./gateway.ts";
export { ledger } from "./ledger-command.ts";
export { target } from "./target.ts";
export { webhook } from "./webhook.ts";
