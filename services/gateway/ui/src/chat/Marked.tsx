/** Text with the words that were searched marked in it; compared without case and accents. */
export function Marked({ text, words }: { text: string; words: string }) {
  const pieces = split(text, words);
  return (
    <span className="marked" dir="auto">
      {pieces.map((piece, index) => (piece.hit ? <mark key={index}>{piece.text}</mark> : piece.text))}
    </span>
  );
}

function folded(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

/** Cut `text` into pieces that match one of the words and pieces that do not. */
export function split(text: string, words: string): { text: string; hit: boolean }[] {
  const wanted = folded(words).split(/\s+/).filter(Boolean);
  // Folding may change lengths, so each character is folded by itself and its place remembered.
  const starts: number[] = [];
  let plain = "";
  let offset = 0;
  for (const character of text) {
    for (const unit of folded(character)) {
      plain += unit;
      for (let n = 0; n < unit.length; n++) starts.push(offset);
    }
    offset += character.length;
  }
  starts.push(text.length);
  const hits: [number, number][] = [];
  for (const word of wanted) {
    for (let at = plain.indexOf(word); at >= 0; at = plain.indexOf(word, at + word.length)) {
      const end = starts.slice(at + word.length).find((each) => each > (starts[at + word.length - 1] ?? 0)) ?? text.length;
      hits.push([starts[at] ?? 0, end]);
    }
  }
  hits.sort((a, b) => a[0] - b[0]);
  const pieces: { text: string; hit: boolean }[] = [];
  let done = 0;
  for (const [from, to] of hits) {
    if (to <= done) continue;
    const begin = Math.max(from, done);
    if (begin > done) pieces.push({ text: text.slice(done, begin), hit: false });
    const last = pieces.at(-1);
    if (last?.hit && begin === done) last.text += text.slice(begin, to);
    else pieces.push({ text: text.slice(begin, to), hit: true });
    done = to;
  }
  if (done < text.length) pieces.push({ text: text.slice(done), hit: false });
  return pieces;
}
