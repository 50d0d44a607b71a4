/** Cuts to at most `max` UTF-16 code units and never inside a surrogate pair. */
export function truncate(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  const splitsPair = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, splitsPair ? max - 1 : max);
}

/** Shorter values are words, not secrets: blotting them out would garble every line. */
const shortestSecret = 6;

/** Replaces every known secret in `text`, also in the form that JSON gives it, by `[redacted]`. */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret.length < shortestSecret) continue;
    const escaped = JSON.stringify(secret).slice(1, -1);
    clean = clean.replaceAll(secret, "[redacted]");
    if (escaped !== secret) clean = clean.replaceAll(escaped, "[redacted]");
  }
  return clean;
}
