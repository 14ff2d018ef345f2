/**
 * Two letters that stand for a name: of its first two words, else its first letter and the consonant after it, since
 * many names begin alike (Researcher, Reviewer).
 */
export function initials(name: string): string {
  const words = name.trim().split(/\s+/).map((word) => [...word]);
  const [first = "", ...rest] = words[0] ?? [];
  const second = words[1]?.[0] ?? rest.find((letter) => /[^aeiou\P{L}]/iu.test(letter)) ?? rest[0] ?? "";
  return first.toUpperCase() + second.toLowerCase();
}

/** The letters of several names, no two alike as long as their letters allow it; who stands before another keeps its own. */
export function initialsApart(names: readonly string[]): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    const [first = "", ...rest] = [...name.replace(/\s+/g, "")];
    const others = rest.map((letter) => first.toUpperCase() + letter.toLowerCase());
    const letters = [initials(name), ...others].find((each) => !taken.has(each)) ?? initials(name);
    taken.add(letters);
    return letters;
  });
}
