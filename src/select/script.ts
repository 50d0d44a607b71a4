import { realpath, stat } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { Rejection } from "../core/errors.ts";
import { isObject, parseJson } from "../core/json.ts";
import { ignoreMarkers } from "../core/names.ts";
import type { Environment, Event, Json, JsonObject } from "../core/types.ts";
import { isShortage } from "../lib/file.ts";
import { createGate, type Gate } from "../lib/gate.ts";
import { type Finished, plainEnvironment, run } from "../lib/spawn.ts";

/** A route's script and what it may have. */
export interface ScriptRun {
  /** As the route names it: a path inside `<home>/scripts`. */
  readonly script: string;
  readonly home: string;
  readonly event: Event;
  /** Program for scripts that are not `.sh` or `.bash`, for example `python3`. */
  readonly python: string;
  readonly timeoutMs: number;
  /** The gateway's environment, of which the script sees PATH, HOME, LANG, TZ and what `extraEnv` names. */
  readonly env: Environment;
  /** The route's `script_env`: names of further variables. */
  readonly extraEnv: readonly string[];
  /** Aborted when the gateway stops. */
  readonly signal?: AbortSignal;
  /** Bounds how many scripts run at once; by default one gate of 8 for the whole process. */
  readonly gate?: Gate;
}

/** The payload that goes on, or why the event is ignored. The reason holds neither payload nor output. */
export type ScriptResult = { readonly payload: JsonObject } | { readonly ignored: string };

/** A burst of events must not become a burst of interpreters. */
const scriptGate = createGate(8);

const maxOutputBytes = 1024 * 1024;

/**
 * Runs a route's script with the payload as JSON on standard input (specification section 2.6, contract section 5). A JSON
 * object on standard output replaces the payload, other text becomes its field `script_output`. The event is ignored when the
 * script says so, prints nothing or too much, fails, takes too long, or is not there.
 * @throws Rejection `unavailable` when the gateway stops meanwhile or the machine cannot start another program now: the script
 * has not decided, so the sender must try again.
 */
export async function runScript(script: ScriptRun): Promise<ScriptResult> {
  const located = await locateScript(script.script, script.home);
  if ("problem" in located) return { ignored: located.problem };
  const finished = await (script.gate ?? scriptGate)(() => spawnScript(located.path, script));
  if (finished.end === "aborted") throw new Rejection("unavailable", "The gateway stopped while the script ran");
  if (isShortage(finished.errorCode)) {
    throw new Rejection("unavailable", `The script cannot be started now (${finished.errorCode})`);
  }
  const failure = failureOf(finished, script.timeoutMs);
  if (failure !== undefined) return { ignored: failure };
  return readOutput(finished.stdout.toString("utf8").trim(), script.event.payload);
}

/** The script's real path, or why it cannot be run. Symbolic links that lead out of `<home>/scripts` are refused. */
export async function locateScript(
  script: string,
  home: string,
): Promise<{ readonly path: string } | { readonly problem: string }> {
  const folder = join(resolve(home), "scripts");
  try {
    const path = await realpath(resolve(folder, script));
    if (!path.startsWith((await realpath(folder)) + sep))
      return { problem: `The script "${script}" lies outside "scripts"` };
    return (await stat(path)).isFile() ? { path } : { problem: `The script "${script}" is not a file` };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (isShortage(code))
      throw new Rejection("unavailable", `The script cannot be read now (${code})`, { cause: error });
    return { problem: `The script "${script}" is missing in "scripts", or cannot be read` };
  }
}

function spawnScript(path: string, { event, python, timeoutMs, signal, ...rest }: ScriptRun): Promise<Finished> {
  return run({
    argv: [/\.(sh|bash)$/.test(path) ? "bash" : python, path],
    env: scriptEnvironment(event, rest),
    cwd: dirname(path),
    // Shells read whole lines.
    stdin: `${JSON.stringify(event.payload)}\n`,
    timeoutMs,
    maxOutputBytes,
    signal,
  });
}

function scriptEnvironment(
  event: Event,
  { env, extraEnv }: Pick<ScriptRun, "env" | "extraEnv">,
): Record<string, string> {
  const extras = extraEnv.map((name) => [name, env[name]] as const).filter((entry) => entry[1] !== undefined);
  return {
    ...plainEnvironment(env),
    ...(Object.fromEntries(extras) as Record<string, string>),
    WEBHOOK_ROUTE: event.route,
    WEBHOOK_EVENT: withoutNul(event.type),
    WEBHOOK_DELIVERY_ID: withoutNul(event.deliveryId),
  };
}

/** No environment can hold a NUL, but the type may come from a body. */
function withoutNul(text: string): string {
  return text.replaceAll("\0", "");
}

function failureOf({ end, exitCode }: Finished, timeoutMs: number): string | undefined {
  if (end === "timeout") return `The script took longer than ${timeoutMs} ms`;
  if (end === "overflow") return `The script printed more than ${maxOutputBytes} bytes`;
  if (end === "missing") return "The script's interpreter could not be started, install it or set scripts.python";
  if (exitCode === 0) return undefined;
  return exitCode === null ? "The script was ended by a signal" : `The script ended with exit code ${exitCode}`;
}

function readOutput(output: string, payload: JsonObject): ScriptResult {
  if (output === "") return { ignored: "The script printed nothing" };
  if (output === "[SILENT]") return { ignored: 'The script printed "[SILENT]"' };
  const value = jsonOrUndefined(output);
  if (!isObject(value)) return { payload: { ...payload, script_output: output } };
  const marker = ignoreMarkers.find((key) => Object.hasOwn(value, key) && value[key] === true);
  return marker === undefined ? { payload: value } : { ignored: `The script set "${marker}"` };
}

function jsonOrUndefined(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    // Text that is no JSON is an answer too.
    return undefined;
  }
}
