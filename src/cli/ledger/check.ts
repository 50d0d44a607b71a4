import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { UserError } from "../../core/errors.ts";
import type { Findings } from "../../store/check.ts";
import type { StoreSettings } from "../../store/settings.ts";
import { type CommonOptions, type Context, homeOf, print } from "../context.ts";
import { storeSettings } from "../ledger.ts";

/** Checks the home's ledger, or the file of another one, says what to do about what it finds, and fails when it finds any. */
export async function check(file: string | undefined, options: CommonOptions, context: Context): Promise<void> {
  const settings = await settingsOf(file, options, context);
  const ledger = settings.kind === "sqlite" ? settings.path : `schema "${settings.schema}" in the PostgreSQL database`;
  if (settings.kind === "sqlite" && !existsSync(settings.path)) {
    if (file !== undefined) throw new UserError(`There is no file "${settings.path}"`);
    print(context, options, { ledger, ok: true, ...none, notes: ["There is no ledger yet"] }, [
      "There is no ledger yet",
    ]);
    return;
  }
  const findings = await findingsOf(settings);
  const isSound = findings.damage.length + findings.violations.length === 0;
  if (!isSound) context.setExitCode(1);
  const lines = [...findings.damage, ...findings.violations].map((line) => `  ${line}`);
  print(context, options, { ledger, ok: isSound, ...findings }, [
    `The ledger ${settings.kind === "sqlite" ? `"${ledger}"` : `(${ledger})`} ${isSound ? "is sound" : "is not sound:"}`,
    ...lines,
    ...findings.notes,
    ...advice(findings, settings),
  ]);
}

const none: Findings = { damage: [], violations: [], notes: [] };

async function settingsOf(file: string | undefined, options: CommonOptions, context: Context): Promise<StoreSettings> {
  return file === undefined
    ? storeSettings(homeOf(context, options), context)
    : { kind: "sqlite", path: resolve(file) };
}

async function findingsOf(settings: StoreSettings): Promise<Findings> {
  const { checkPostgres, checkSqlite } = await import("../../store/check.ts");
  return settings.kind === "sqlite" ? checkSqlite(settings.path) : checkPostgres(settings);
}

function advice({ damage, violations }: Findings, settings: StoreSettings): string[] {
  return [
    ...(damage.length > 0 ? damageAdvice(settings) : []),
    ...(violations.length > 0 && damage.length === 0 ? violationAdvice : []),
  ];
}

function damageAdvice(settings: StoreSettings): string[] {
  if (settings.kind === "postgres") return ["", "What to do: restore a backup of the database"];
  const { path } = settings;
  return [
    "",
    "What to do:",
    "  1. Stop the gateway",
    "  2. Save what can still be read:       postern events export > events.jsonl",
    `  3. Move the damaged files aside:      ${path}, ${path}-wal and ${path}-shm`,
    `  4. Put a backup in place, if any:     cp BACKUP ${path}`,
    "  5. Start the gateway, and bring in what the backup does not have: postern events import events.jsonl",
  ];
}

const violationAdvice = [
  "",
  "What to do: back the ledger up (postern ledger backup FILE), then end what stands still with",
  '"postern events cancel ID" and do it again with "postern events replay ID"; please report how it came about',
];
