export { generic } from "./generic.ts";
export { generic_v2 } from "./generic_v2.ts";
export { github } from "./github.ts";
export { gitlab } from "./gitlab.ts";
export { standard } from "./standard.ts";
