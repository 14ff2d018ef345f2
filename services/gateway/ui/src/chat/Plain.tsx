import { visible } from "../ui/visible";

/** A text as it is written, where it is not drawn as Markdown. */
export function Plain({ text }: { text: string }) {
  return (
    <p className="prose raw" dir="auto">
      {visible(text)}
    </p>
  );
}
