import { isSameAddress } from "./tree.ts";

/** Whether an address may become a link: http, https and mailto, nothing that runs code or stays within a client. */
export function isLinkable(url: string): boolean {
  return /^(?:https?:\/\/[^/?#\s\\]|mailto:[^\s?])/i.test(url);
}

const longestLabel = 300;
/** A word that reads like a name of the web. The other dots are those that browsers take for one in a name. */
const nameLike = /(?:[\p{L}\p{M}\p{N}_-]{1,63}[.。｡]){1,8}[\p{L}\p{M}]{2,24}/gu;
/** What begins as an address does, whatever follows: a number, a name without a dot. The other strokes look like slashes. */
const begun = /(?:https?:[/\\\u2044\u2215\u29f8]{1,3}|www\.)(?<host>[^\s/?#\\\u2044\u2215\u29f8]*)/giu;
/** Endings of file names that are domains as well, or might be. */
const fileName =
  /\.(?:md|ts|tsx|js|jsx|mjs|cjs|py|rs|go|sh|rb|pl|cc|java|kt|swift|php|json|ya?ml|toml|txt|html?|css|sql|lock|log|csv|xml|ini|conf|cfg|env|zip|cpp|hpp|cs|vue)$/i;

/** Whether a link's text reads like an address at another host than `url` leads to. */
export function isDeceptive(label: string, url: string): boolean {
  if (label.length > longestLabel) return true;
  const target = hostOf(url);
  if (target !== undefined && isSameAddress(label, url)) return false;
  const leadsElsewhere = (host: string) => target === undefined || hostOf(`http://${host}`) !== target;
  // Nobody sees what is taken out, and the name reads as if it were not there.
  const seen = label.normalize("NFKC").replaceAll(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, "");
  const begins = [...seen.matchAll(begun)].map(({ groups }) => (groups?.host ?? "").replace(/\p{P}+$/u, ""));
  if (begins.some(leadsElsewhere)) return true;
  return [...seen.matchAll(nameLike)].some(([name]) => !fileName.test(name) && leadsElsewhere(name));
}

function hostOf(url: string): string | undefined {
  try {
    const { protocol, hostname, pathname } = new URL(url);
    const host = protocol === "mailto:" ? pathname.slice(pathname.lastIndexOf("@") + 1) : hostname;
    return host.toLowerCase().replace(/^www\./, "");
  } catch {
    return undefined;
  }
}
