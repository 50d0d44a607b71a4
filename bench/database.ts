import type { PostgresServer } from "../test/tools/postgres.ts";

/** As PostgreSQL comes, and not as small as for tests; with `pg_stat_statements` when its numbers are wanted. */
export function postgresSettings(counting: boolean): Record<string, string> {
  // Each gateway makes up to 17 connections.
  return {
    shared_buffers: "128MB",
    max_connections: "200",
    ...(counting ? { shared_preload_libraries: "pg_stat_statements" } : {}),
  };
}

interface Counted {
  readonly calls: number;
  readonly total: number;
  readonly mean: number;
  readonly most: number;
  readonly pages: number;
  readonly query: string;
}

/** Prints the statements that took most of the server's time since it was started, and begins to count anew. */
export async function printStatements(ask: (sql: string) => ReturnType<PostgresServer["query"]>): Promise<void> {
  const rows = (await ask(`select calls::int, total_exec_time as total, mean_exec_time as mean, max_exec_time as most,
      (shared_blks_hit + shared_blks_read)::float / calls as pages, query
    from pg_stat_statements order by total_exec_time desc limit 15`)) as unknown as Counted[];
  for (const { calls, total, mean, most, pages, query } of rows) {
    const words = query.replaceAll(/\s+/g, " ").slice(0, 110);
    const times = `${Math.round(total)} ms in all, ${mean.toFixed(3)} each, ${most.toFixed(1)} at most`;
    console.log(`    ${calls} times: ${times}, ${Math.round(pages)} pages: ${words}`);
  }
  await ask("select pg_stat_statements_reset()");
}
