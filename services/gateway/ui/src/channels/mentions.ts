/** Who can be named: by id, or by name with hyphens for blanks. */
export interface Named {
  id: string;
  name: string;
}

// Code is quoted, and says nothing to anybody.
const CODE = /```[\s\S]*?(?:```|$)|`[^`\n]*`/g;
// Not within a word or an address: me@example.org names nobody.
const NAMED = /(?<![\w@./-])@([A-Za-z0-9][A-Za-z0-9_-]{0,63})/g;
const BEGUN = /(?<![\w@./-])@([A-Za-z0-9_-]{0,64})$/;

function hyphened(name: string): string {
  return name.toLowerCase().trim().split(/\s+/).join("-");
}

function calledSo(word: string, known: readonly Named[]): string | undefined {
  const wanted = word.toLowerCase().replace(/[-_]+$/, "");
  return (known.find(({ id }) => id.toLowerCase() === wanted) ?? known.find(({ name }) => hyphened(name) === wanted))?.id;
}

/** The ids of those that a text names outside of code, each once, in the order of the text. The server has the last word. */
export function mentioned(text: string, known: readonly Named[]): string[] {
  const ids = [...text.replace(CODE, " ").matchAll(NAMED)].map(([, word = ""]) => calledSo(word, known));
  return [...new Set(ids.filter((id) => id !== undefined))];
}

/** A name that is being typed right before `caret`: where its @ stands, and what of it is there. */
export interface Begun {
  at: number;
  typed: string;
}

export function begunAt(text: string, caret: number): Begun | null {
  const [whole, typed = ""] = BEGUN.exec(text.slice(0, caret)) ?? [];
  if (whole === undefined) return null;
  const at = caret - whole.length;
  const isQuoted = [...text.matchAll(CODE)].some(({ index, 0: code }) => index < at && at < index + code.length);
  return isQuoted ? null : { at, typed };
}

/** Who may be meant by the beginning of a name, likeliest first; nobody where it is whole already. */
export function meant(typed: string, known: readonly Named[]): Named[] {
  const wanted = typed.toLowerCase();
  if (wanted && calledSo(typed, known)) return [];
  const rank = ({ id, name }: Named) => {
    const words = [id.toLowerCase(), hyphened(name)];
    return words.some((word) => word.startsWith(wanted)) ? 0 : words.some((word) => word.includes(wanted)) ? 1 : 2;
  };
  return known.filter((each) => rank(each) < 2).sort((a, b) => rank(a) - rank(b));
}

/** The text with the begun name made whole, and where the caret goes. */
export function completed(text: string, { at, typed }: Begun, id: string): { text: string; caret: number } {
  const before = `${text.slice(0, at)}@${id} `;
  return { text: before + text.slice(at + 1 + typed.length).replace(/^ /, ""), caret: before.length };
}
