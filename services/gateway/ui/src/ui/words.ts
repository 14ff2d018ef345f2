/** Times, sizes and durations in words that a person reads. */
const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const weekday = new Intl.DateTimeFormat(undefined, { weekday: "short" });
const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const number = new Intl.NumberFormat(undefined);
const DAY_MS = 86_400_000;

function midnight(at: Date): number {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
}

/** 14:31 today, Sat within a week, 3 Nov before that. */
export function when(iso: string, now = new Date()): string {
  const at = new Date(iso);
  const days = Math.round((midnight(now) - midnight(at)) / DAY_MS);
  if (days <= 0) return time.format(at);
  return days < 7 ? weekday.format(at) : date.format(at);
}

export function clock(iso: string): string {
  return time.format(new Date(iso));
}

export function exactly(iso: string): string {
  return full.format(new Date(iso));
}

/** Which group of a list a time belongs to. */
export function period(iso: string, now = new Date()): string {
  const days = Math.round((midnight(now) - midnight(new Date(iso))) / DAY_MS);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "Earlier this week";
  return days < 31 ? "Earlier this month" : "Older";
}

/** 48 ms, 5.6 s, 1 min 37 s, 2 h 5 min. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
}

/** 812, 18.2 k, 1.2 M. */
export function count(n: number): string {
  if (n < 10_000) return number.format(n);
  return n < 1_000_000 ? `${(n / 1_000).toFixed(n < 100_000 ? 1 : 0)} k` : `${(n / 1_000_000).toFixed(1)} M`;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${number.format(n)} ${n === 1 ? one : many}`;
}

/** 512 B, 432 kB, 1.2 GB. */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes / 1_000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
