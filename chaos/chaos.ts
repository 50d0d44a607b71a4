import { join } from "node:path";
import { startPostgres } from "../test/tools/postgres.ts";
import { takeGround } from "./ground.ts";
import { type ChaosOptions, planRounds } from "./plan.ts";
import { playRound, type RoundResult } from "./round.ts";

/** Plays all rounds and calls back after each. What they need is gone when it fulfils, but for what is kept to look into. */
export async function playRounds(options: ChaosOptions, tell: (result: RoundResult) => void): Promise<RoundResult[]> {
  const ground = takeGround();
  const server = options.store === "postgres" ? await startPostgres() : undefined;
  const results: RoundResult[] = [];
  try {
    for (const plan of planRounds(options)) {
      const result = await playRound(plan, options, join(ground.folder, `round-${plan.number}`), server);
      if (result.keptIn !== undefined) ground.keep();
      results.push(result);
      tell(result);
    }
    return results;
  } catch (error) {
    ground.keep();
    throw new Error(`A round could not be played to its end; what there is of it is in ${ground.folder}`, {
      cause: error,
    });
  } finally {
    await server?.close();
    await ground.clear();
  }
}
