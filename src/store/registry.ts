export { openSqlite as sqlite } from "./sqlite.ts";
