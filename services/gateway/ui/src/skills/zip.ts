const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

export function crc32(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (value >>> 8) ^ (TABLE[(value ^ byte) & 255] ?? 0);
  return (value ^ 0xffffffff) >>> 0;
}

// 1 January 1980, the first day there is: what is the same has the same bytes.
const DAY = 0x21;
const UTF8_NAMES = 0x800;

/** An archive of texts by path, not packed: they are few and small. */
export function zip(texts: Readonly<Record<string, string>>): Blob {
  const encoder = new TextEncoder();
  const files: Uint8Array<ArrayBuffer>[] = [];
  const entries: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  for (const [path, text] of Object.entries(texts)) {
    const name = encoder.encode(path);
    const data = encoder.encode(text);
    // What stands before a file and in the list at the end alike.
    const about = [20, 2, UTF8_NAMES, 2, 0, 2, 0, 2, DAY, 2, crc32(data), 4, data.length, 4, data.length, 4, name.length, 2, 0, 2];
    const local = [...bytes(0x04034b50, 4), ...bytes(...about)];
    files.push(Uint8Array.from(local), name, data);
    entries.push(Uint8Array.from([...bytes(0x02014b50, 4, 20, 2), ...bytes(...about), ...bytes(0, 2, 0, 2, 0, 2, 0, 4, offset, 4)]), name);
    offset += local.length + name.length + data.length;
  }
  const count = entries.length / 2;
  const length = entries.reduce((sum, entry) => sum + entry.length, 0);
  const end = Uint8Array.from(bytes(0x06054b50, 4, 0, 2, 0, 2, count, 2, count, 2, length, 4, offset, 4, 0, 2));
  return new Blob([...files, ...entries, end], { type: "application/zip" });
}

/** Numbers with the bytes that each takes, lowest first. */
function bytes(...pairs: number[]): number[] {
  const found: number[] = [];
  for (let index = 0; index < pairs.length; index += 2) {
    const value = pairs[index] ?? 0;
    for (let at = 0; at < (pairs[index + 1] ?? 0); at += 1) found.push((value >>> (8 * at)) & 255);
  }
  return found;
}
