/** `; did you mean "token"?` when one of the names is near the written one, else a list of the names that there are. */
export function suggestion(written: string, names: readonly string[]): string {
  const near = nearest(written, names);
  if (near !== undefined) return `; did you mean "${near}"?`;
  return names.length === 0 ? "; it takes none" : `; it takes ${names.map((name) => `"${name}"`).join(", ")}`;
}

/** The name that differs in the fewest letters, if that is at most a third of them. */
function nearest(written: string, names: readonly string[]): string | undefined {
  // A long word is near to nothing, and comparing it would take long.
  if (written.length > 64) return undefined;
  const word = written.toLowerCase();
  const [best] = names
    .map((name) => ({ name, steps: editSteps(word, name.toLowerCase()) }))
    .filter(({ name, steps }) => steps <= Math.max(1, name.length / 3))
    .sort((one, other) => one.steps - other.steps);
  return best?.name;
}

/** Levenshtein distance: letters to add, drop or replace. */
function editSteps(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const replace = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(replace, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[other.length]!;
}
