import { UserError } from "../../core/errors.ts";
import { plainText } from "../../target/neutralise.ts";
import type { Terminal } from "../context.ts";

export interface Choice {
  readonly value: string;
  readonly label: string;
  readonly hint?: string;
}

/** Why an answer will not do, or `undefined`. */
export type Complaint = (answer: string) => string | undefined;

/** Questions to the person at the terminal. Each throws a UserError when the person cancels. */
export interface Ask {
  say(text: string, title?: string): void;
  confirm(message: string, initial: boolean): Promise<boolean>;
  /** Enter takes the default; without one an empty answer is "". */
  text(message: string, preset?: string, complaint?: Complaint): Promise<string>;
  /** Shows dots. */
  secret(message: string, complaint?: Complaint): Promise<string>;
  choose(message: string, choices: readonly Choice[], initial: string): Promise<string>;
  end(text: string): void;
}

/** Makes the questions, drawn by clack, which is imported only now. */
export async function createAsk({ input, output }: Terminal): Promise<Ask> {
  const clack = await import("@clack/prompts");
  const streams = { input, output };
  const answered = async <Value>(answer: Promise<Value | typeof clack.CANCEL_SYMBOL>): Promise<Value> => {
    const value = await answer;
    if (clack.isCancel(value)) throw new UserError("Cancelled; nothing was written");
    return value;
  };
  clack.intro("Postern setup", { output });
  return {
    say: (text, title) => clack.note(plainText(text), title, { output, format: (line) => line }),
    confirm: (message, initialValue) => answered(clack.confirm({ ...streams, message, initialValue })),
    async text(message, preset, complaint) {
      const defaults = preset === undefined ? {} : { placeholder: preset, defaultValue: preset };
      const validate = (answer = "") => complaint?.(answer === "" ? (preset ?? "") : answer);
      return (await answered(clack.text({ ...streams, ...defaults, message, validate }))) ?? "";
    },
    async secret(message, complaint) {
      const validate = (answer = "") => complaint?.(answer);
      return (await answered(clack.password({ ...streams, message, validate }))) ?? "";
    },
    choose: (message, choices, initialValue) =>
      answered(clack.select<string>({ ...streams, message, options: [...choices], initialValue })),
    end: (text) => clack.outro(text, { output }),
  };
}
