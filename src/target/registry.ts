export { email } from "./email.ts";
export { github_comment } from "./github_comment.ts";
export { log } from "./log.ts";
export { telegram } from "./telegram.ts";
