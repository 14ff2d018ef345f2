/** What a folder or a repository is called as long as nobody says otherwise. */
export function nameOf(path: string): string {
  return path.trim().split(/[/:]/).findLast((part) => part !== "")?.slice(0, 100) ?? "";
}
