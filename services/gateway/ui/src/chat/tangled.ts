// Where parsing Markdown begins to take longer than a second on two cores: found by `make bench NAME=page`.
const MOST_MARKS = 1_500;
const MOST_CELLS = 4_000;
const MOST_EMPHASIS = 6_000;
const LONGEST_BLOCK = 40_000;
const DEEPEST_INDENT = 80;
const DEEPEST_QUOTE = 50;

// A fence that is still open reaches to the end.
const FENCED = /^(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^\1[`~]*[ \t]*$|(?![\s\S]))/gm;
const BLANK = /\n[ \t]*\n/;
const DEEP = new RegExp(`^(?:[ \\t]{${DEEPEST_INDENT},}(?:[-*+]|\\d+[.)])[ \\t]|(?:>[ \\t]?){${DEEPEST_QUOTE},})`, "m");

/** Whether a text was made to be slow, or happens to be: it is shown as it is written then, not as Markdown. */
export function isTangled(text: string): boolean {
  if (text.length < MOST_MARKS) return false;
  const prose = text.replace(FENCED, "");
  if (DEEP.test(prose)) return true;
  return prose.split(BLANK).some((block) => {
    if (block.length < MOST_MARKS) return false;
    if (block.length > LONGEST_BLOCK) return true;
    let brackets = 0;
    let cells = 0;
    let emphasis = 0;
    for (let at = 0; at < block.length; at++) {
      const code = block.charCodeAt(at);
      if (code === 91 || code === 93) brackets++;
      else if (code === 124) cells++;
      else if (code === 42 || code === 95 || code === 126) emphasis++; // * _ ~
    }
    return brackets > MOST_MARKS || cells > MOST_CELLS || emphasis > MOST_EMPHASIS;
  });
}
