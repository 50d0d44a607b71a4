import type { JSONSchema7 } from "ai";
import type { Bench } from "../bench.ts";

/** Something the model of the `builtin` backend may do. One file each, listed in `registry.ts`; export name = tool name. */
export interface Tool {
  /** Told to the model. */
  readonly description: string;
  /** JSON Schema of the arguments, told to the model. A model may ignore it: `call` checks for itself. */
  readonly parameters: JSONSchema7;
  /** Does it and answers in text for the model. What it throws is told to the model too, and does not end the run. */
  call(input: unknown, bench: Bench): Promise<string>;
}
