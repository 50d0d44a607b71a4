/** A whole number from the command line; ends the program when it is none. */
export function wholeNumber(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text) && Number(text) > 0) return Number(text);
  console.error(`--${name} takes a whole number above 0, found "${text}"`);
  process.exit(2);
}

/** The store from the command line; ends the program when there is none of this name. */
export function storeName(text: string): "sqlite" | "postgres" {
  if (text === "sqlite" || text === "postgres") return text;
  console.error(`--store takes sqlite or postgres, found "${text}"`);
  process.exit(2);
}
