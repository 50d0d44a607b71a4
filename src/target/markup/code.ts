// Code between marks that nothing within it can end.

/** Code within a line for services that read CommonMark: between more backticks than stand together in it. */
export function longSpan(code: string): string {
  const marks = marksFor(code, 1);
  const isTouching = code.startsWith("`") || code.endsWith("`");
  return isTouching ? `${marks} ${code} ${marks}` : marks + code + marks;
}

/** A block of code for services that read CommonMark. */
export function longFence(code: string, lang = ""): string {
  const marks = marksFor(code, 3);
  return `${marks}${lang}\n${code}\n${marks}`;
}

/** Code within a line for services that know one backtick only: those of the code become another character. */
export function shortSpan(code: string): string {
  return `\`${code.replaceAll("`", "\u02cb")}\``;
}

/** A block of code for services that know three backticks only: a zero-width space parts those of the code. */
export function shortFence(code: string): string {
  const parted = code.replaceAll(/`(?=`)/g, "`\u200b");
  return `\`\`\`\n${parted}${parted.endsWith("`") ? "\u200b" : ""}\n\`\`\``;
}

function marksFor(code: string, fewest: number): string {
  let longest = fewest - 1;
  for (const [run] of code.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return "`".repeat(longest + 1);
}
