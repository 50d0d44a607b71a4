export { openPostgres as postgres } from "./postgres.ts";
export { openSqlite as sqlite } from "./sqlite.ts";
