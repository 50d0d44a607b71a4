import type { StoredDocument, TargetTrouble } from "../store.ts";
import { changes, type Dialect, row, rows } from "./statement.ts";

/** Statements on what is kept besides events: how targets take it, budgets, documents. */
export function sharedStatements(dialect: Dialect) {
  return { ...troubleRows(dialect), ...budgetRows(dialect), ...documentRows() };
}

/** `busyUntil`: until when it asked to be left alone. */
export type Trouble = TargetTrouble & { readonly lastMessage: string; readonly busyUntil: number };

const troubleColumns = `target, failures, last_message as "lastMessage", pauses, paused_until as "pausedUntil",
  busy_until as "busyUntil", reason`;

function troubleRows(dialect: Dialect) {
  return {
    listTroubles: rows<Trouble>(`select ${troubleColumns} from troubles order by target`),
    holdTrouble: row<Trouble>(`select ${troubleColumns} from troubles where target = :target ${dialect.locking}`),
    insertTrouble: changes(
      `insert into troubles (target, failures, last_message, pauses, paused_until, busy_until)
       values (:target, 0, '', 0, 0, 0) on conflict (target) do nothing`,
    ),
    writeTrouble: changes(
      `update troubles set failures = :failures, last_message = :lastMessage, pauses = :pauses,
         paused_until = :pausedUntil, busy_until = :busyUntil, reason = :reason where target = :target`,
    ),
    endTrouble: changes("delete from troubles where target = :target"),
    shiftTroubles: changes("update troubles set paused_until = paused_until + :by, busy_until = busy_until + :by"),
  };
}

function budgetRows({ least, greatest }: Dialect) {
  const fresh = `${least}(cast(:count as bigint), cast(:limit as bigint))`;
  const isOpen = "(:now >= budgets.window_start and :now < budgets.window_start + :windowMs)";
  const left = `${greatest}(0, ${least}(cast(:count as bigint), cast(:limit as bigint) - budgets.spent))`;
  return {
    spend: row<{ granted: number; windowStart: number }>(
      `insert into budgets (route, window_start, spent, granted) values (:route, :now, ${fresh}, ${fresh})
       on conflict (route) do update set
         window_start = case when ${isOpen} then budgets.window_start else :now end,
         spent = case when ${isOpen} then budgets.spent + ${left} else ${fresh} end,
         granted = case when ${isOpen} then ${left} else ${fresh} end
       returning granted, window_start as "windowStart"`,
    ),
    giveBack: changes(
      `update budgets set spent = ${greatest}(0, spent - cast(:count as bigint))
       where route = :route and window_start = :windowStart`,
    ),
  };
}

function documentRows() {
  return {
    readDocument: row<StoredDocument>("select version, text from documents where name = :name"),
    insertDocument: changes(
      "insert into documents (name, version, text) values (:name, 1, :text) on conflict (name) do nothing",
    ),
    updateDocument: changes(
      "update documents set version = version + 1, text = :text where name = :name and version = :seen",
    ),
  };
}
