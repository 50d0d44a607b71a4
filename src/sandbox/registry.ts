export { sandbox } from "./bubblewrap.ts";
export { local } from "./local.ts";
