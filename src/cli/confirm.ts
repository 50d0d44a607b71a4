import type { Terminal } from "./context.ts";

/** Asks a question whose answer is no unless the person says yes. Cancelling is no. */
export async function confirm(question: string, { input, output }: Terminal): Promise<boolean> {
  const clack = await import("@clack/prompts");
  return (await clack.confirm({ input, output, message: question, initialValue: false })) === true;
}
