/** Where a ledger is: a file of this home, or a database that several gateways share. */
export type StoreSettings =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string; readonly schema: string };

/** What the address of a PostgreSQL store looks like. */
const example = "postgres://user:password@host:5432/database";

/** Why a text cannot be the address of a store, or `undefined` when it can. The sentence holds nothing of the text. */
export function badStoreUrl(url: string): string | undefined {
  if (!/^postgres(ql)?:\/\//.test(url)) {
    return `Expected the address of a PostgreSQL database such as "${example}"; for the SQLite file in the home, remove it`;
  }
  if (isReadable(url)) return undefined;
  return `This is no address that can be read; write "${example}", with "%40" for "@" and the like in user and password`;
}

function isReadable(url: string): boolean {
  try {
    const { username, password, pathname, hash } = new URL(url);
    for (const part of [username, password, pathname]) decodeURIComponent(part);
    // With "#" or "/" in the password, the rest of it and the host end up here.
    return hash === "" && !pathname.includes("@");
  } catch {
    return false;
  }
}

/** The address of a store and each form of the password in it: what must stand in no log, message or record. */
export function storeSecrets(url: string): string[] {
  if (!URL.canParse(url)) return [url];
  const { password, searchParams } = new URL(url);
  const named = [...searchParams].flatMap(([name, value]) => (/password/i.test(name) ? [value] : []));
  return [url, ...formsOf(password), ...named].filter((secret) => secret !== "");
}

/** A password as the address writes it and as the server knows it. */
function formsOf(written: string): string[] {
  try {
    return [...new Set([written, decodeURIComponent(written)])];
  } catch {
    return [written];
  }
}
