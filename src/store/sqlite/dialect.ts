import type { Dialect } from "../sql/statement.ts";

/** SQLite's words. There is one writer, so nothing has to be held or waited for. */
export const dialect: Dialect = {
  locking: "",
  skippingLocked: "",
  least: "min",
  greatest: "max",
  measure: `select (pages.page_count - free.freelist_count) * size.page_size as bytes
    from pragma_page_count() pages, pragma_freelist_count() free, pragma_page_size() size`,
  isAmong: (column, name) => `${column} in (select value ->> 'id' from json_each(:${name}))`,
  rowsOf(name, columns) {
    const members = Object.keys(columns).map((column) => `value ->> '${column}' as ${column}`);
    return `(select ${members.join(", ")} from json_each(:${name}))`;
  },
  *queueUp() {},
};
