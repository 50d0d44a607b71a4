/** What to tell someone who wrote a name that is not known: `did you mean "x"`, else the names there are. */
export function suggestion(word: string, known: readonly string[]): string {
  const close = nearest(word, known);
  if (close !== undefined) return `did you mean "${close}"`;
  return known.length === 0 ? "remove it" : `known are ${known.join(", ")}`;
}

/** The candidate that a mistyped word most likely meant, or `undefined` when none is close. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  // About one slip in three letters is a typing error; more is another word.
  let fewest = Math.max(1, Math.floor(Math.min(word.length, 64) / 3)) + 1;
  for (const candidate of candidates) {
    const slips = distance(word.slice(0, 64).toLowerCase(), candidate.toLowerCase());
    if (slips < fewest) {
      best = candidate;
      fewest = slips;
    }
  }
  return best;
}

/** Optimal string alignment distance: letters to insert, leave out or change, and neighbours to swap. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let line = 1; line <= a.length; line += 1) {
    const next = [line];
    for (let column = 1; column <= b.length; column += 1) {
      const change = row[column - 1]! + (a[line - 1] === b[column - 1] ? 0 : 1);
      const isSwap = a[line - 1] === b[column - 2] && a[line - 2] === b[column - 1];
      const swap = isSwap ? before[column - 2]! + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(change, swap, row[column]! + 1, next[column - 1]! + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
