export { builtin } from "./builtin.ts";
export { command } from "./command.ts";
export { preview } from "./preview.ts";
