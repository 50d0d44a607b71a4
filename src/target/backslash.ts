/** What ends a link's text ends an address, too: one could hide the marks of a whole link. */
const address = /(https?:\/\/(?:[^\s<>"`|\\\]]|\](?!\())+)/;

/**
 * Text with a backslash before every mark that `marks` matches, but not within addresses: where a service makes links of
 * them by itself, it would take the backslash for a part of the address. `inAddress` is for what must not stand there.
 */
export function backslash(text: string, marks: RegExp, inAddress: (address: string) => string = same): string {
  // Every second piece is an address.
  const pieces = text.split(address);
  return pieces.map((piece, index) => (index % 2 === 1 ? inAddress(piece) : piece.replaceAll(marks, "\\$&"))).join("");
}

function same(text: string): string {
  return text;
}
