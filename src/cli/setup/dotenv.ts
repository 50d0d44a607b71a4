import { isDeepStrictEqual, parseEnv } from "node:util";
import { UserError } from "../../core/errors.ts";

/**
 * Sets one variable in the text of a `.env` and leaves every other line, and the comment behind this one, as it stands. The
 * new text is used only when Node reads this value, and all the others, from it.
 * @throws UserError when no kind of quotes can hold the value.
 */
export function setInDotenv(text: string, name: string, value: string): string {
  const written = quoted(name, value);
  const wanted = { ...parseEnv(text), [name]: value };
  for (const result of [replaced(text, name, written), appended(text, `${name}=${written}`)]) {
    if (result !== undefined && isDeepStrictEqual({ ...parseEnv(result) }, wanted)) return result;
  }
  throw new UserError(`${name} cannot be set in .env; look there for a quote that is not closed`);
}

/** The value as `.env` wants it: bare where it may be, else in the first kind of quotes that gives it back. */
function quoted(name: string, value: string): string {
  const bare = /^[\w./:@%+=,~-]+$/.test(value) ? [value] : [];
  const forms = [...bare, `'${value}'`, `"${value}"`, `\`${value}\``];
  const form = forms.find((form) => isDeepStrictEqual({ ...parseEnv(`X=${form}\nY=1\n`) }, { X: value, Y: "1" }));
  if (form !== undefined) return form;
  throw new UserError(
    `The value for ${name} cannot be written to .env: it has every kind of quotes; choose another one`,
  );
}

/** The last assignment counts, so that one is replaced. */
function replaced(text: string, name: string, written: string): string | undefined {
  const value = "'[^']*'|\"[^\"]*\"|`[^`]*`|[^\\r\\n]*?";
  const assignment = new RegExp(
    `^([ \\t]*(?:export[ \\t]+)?${name}[ \\t]*=[ \\t]*)(?:${value})([ \\t]+#.*|[ \\t]*)$`,
    "gm",
  );
  const last = [...text.matchAll(assignment)].at(-1);
  if (!last) return undefined;
  const [whole, before = "", after = ""] = last;
  return text.slice(0, last.index) + before + written + after + text.slice(last.index + whole.length);
}

function appended(text: string, line: string): string {
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  return `${text}${text === "" || text.endsWith("\n") ? "" : newline}${line}${newline}`;
}
