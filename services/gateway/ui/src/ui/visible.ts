// C0 and C1 controls but tab and line end, and the characters that turn the direction of what follows them.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Text as it is, with characters that would hide or reorder some of it written out as ‹U+202E›. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => {
    if (character === "\r") return "";
    const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    return `‹U+${code}›`;
  });
}
