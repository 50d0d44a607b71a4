export { terminal } from "./terminal.ts";
