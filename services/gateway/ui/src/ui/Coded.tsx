/** A sentence of the server in which commands stand between backticks. */
export function Coded({ text }: { text: string }) {
  return text.split(/`([^`]+)`/).map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part));
}
