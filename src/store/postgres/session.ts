import pg from "pg";
import { StoreUnavailable } from "../../core/errors.ts";
import { clientConfig, describe, describeOpening, placeOf, prepareSession } from "./connect.ts";
import { checkSchema } from "./schema.ts";

export interface SessionOptions {
  readonly url: string;
  readonly schema: string;
  readonly readOnly: boolean;
}

/**
 * One connection to a ledger for work that takes as long as it takes: looking through everything, or tidying up.
 * @throws StoreRefused when it is not a ledger this program can use; StoreUnavailable when it cannot be reached.
 */
export async function withSession<Result>(
  { url, schema, readOnly }: SessionOptions,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const place = placeOf({ url, schema });
  const client = new pg.Client({ ...clientConfig(place), query_timeout: 0 });
  // What breaks the connection is told by the query that was under way.
  client.on("error", () => {});
  try {
    try {
      await client.connect();
      await prepareSession(client, place, readOnly);
      await checkSchema(client, place);
      await client.query("set statement_timeout = 0");
    } catch (error) {
      throw describeOpening(error, place);
    }
    return await use(client);
  } catch (error) {
    throw error instanceof StoreUnavailable ? error : describe(error, place);
  } finally {
    await client.end().catch(() => {});
  }
}
