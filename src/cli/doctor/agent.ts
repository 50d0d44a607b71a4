import * as agents from "../../agent/registry.ts";
import * as sandboxes from "../../sandbox/registry.ts";
import { type Check, findings } from "./finding.ts";

const { ok, warning, problem } = findings("agent");

/** Whether runs can start: a model is set up, the program is there, the sandbox opens. */
export const checkAgent: Check = async ({ config, routes }) => {
  if (!config) return [];
  const sandbox = sandboxes[config.sandbox];
  const { backend, ...settings } = config.agent;
  const reason = await agents[backend].blocked({ settings, env: config.env, sandbox });
  const isNeeded = routes.some(({ isDirect }) => !isDirect);
  if (reason === undefined) return [ok(`The backend "${backend}" can run`)];
  const next = "Mend it; until then what needs an agent waits, and nothing is lost";
  const text = `The backend "${backend}" cannot run: ${reason}`;
  return [isNeeded ? problem(text, next) : warning(text, "Mend it before you make a route that needs an agent")];
};

const terminal = findings("terminal");

/** Whether commands of a run can be carried out. */
export const checkTerminal: Check = async ({ config, routes }) => {
  // Other backends bring their own means, or need none.
  if (config?.agent.backend !== "builtin") return [];
  const reason = await sandboxes[config.sandbox].blocked();
  if (reason === undefined) return [terminal.ok(`The backend "${config.sandbox}" works`)];
  const isNeeded = routes.some(({ isDirect, tools }) => !isDirect && tools.includes("terminal"));
  const text = `The backend "${config.sandbox}" does not work: ${reason}`;
  const next = 'Mend it, or choose another "terminal.backend"';
  return [isNeeded ? terminal.problem(text, next) : terminal.warning(text, next)];
};
