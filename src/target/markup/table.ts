const widestAligned = 80;
/** Characters that take two columns: East Asian wide ones and emoji. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
const unseen = /[\p{M}\p{Cf}]/u;

/**
 * A table as lines of text: in columns where a row is at most 80 wide, else its cells with " | " between them. The first
 * row is the header and has a line under it in columns.
 */
export function tableText(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => cell.replaceAll(/\s*\n\s*/g, " ")));
  const widths = (cells[0] ?? []).map((_, column) => widestCell(cells, column));
  const total = widths.reduce((sum, width) => sum + width + 3, 0);
  if (total > widestAligned) return cells.map((row) => row.join(" | ")).join("\n");
  const [header = [], ...others] = cells.map((row) => padded(row, widths));
  const ruler = widths.map((width) => "-".repeat(width)).join("-|-");
  return [header.join(" | ").trimEnd(), ruler, ...others.map((row) => row.join(" | ").trimEnd())].join("\n");
}

function widestCell(rows: readonly (readonly string[])[], column: number): number {
  let widest = 1;
  for (const row of rows) widest = Math.max(widest, columnsOf(row[column] ?? ""));
  return widest;
}

function padded(row: readonly string[], widths: readonly number[]): string[] {
  return widths.map((width, column) => {
    const cell = row[column] ?? "";
    return cell + " ".repeat(width - columnsOf(cell));
  });
}

function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += unseen.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return columns;
}
