import { compileTemplate, type Scope, wholePayload } from "./template.ts";

/** Compiles a route's `prompt`. Without one, or with a blank one, the prompt is the whole payload as indented JSON. */
export function compilePrompt(prompt: string | undefined): (scope: Scope) => string {
  return prompt === undefined || prompt.trim() === "" ? wholePayload : compileTemplate(prompt);
}
