import { accepting } from "./accepting.ts";
import { claiming } from "./claiming.ts";
import { finishing } from "./finishing.ts";
import { byHand } from "./hand.ts";
import { importing } from "./importing.ts";
import { keeping } from "./keeping.ts";
import { leasing } from "./leasing.ts";
import { reading } from "./reading.ts";
import type { Dialect } from "./statement.ts";
import { prepareStatements, type Works } from "./statements.ts";

/** All operations in one database's words. */
export function createWorks(dialect: Dialect): Works {
  const sql = prepareStatements(dialect);
  return {
    ...accepting(sql),
    ...claiming(sql),
    ...finishing(sql),
    ...leasing(sql),
    ...byHand(sql),
    ...importing(sql),
    ...reading(sql),
    ...keeping(sql),
  };
}
