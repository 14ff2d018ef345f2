/** Hand a file to the browser, which asks or knows where it goes. */
export function saveFile(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // Firefox reads it a moment later.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
