import { Component, type ReactNode } from "react";
import { LateMarkdown } from "./loadMarkdown";
import { Plain } from "./Plain";

/** What was written, as Markdown. */
export function Prose({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  return (
    <PlainWhenBroken text={text}>
      <LateMarkdown text={text} isGrowing={isGrowing} />
    </PlainWhenBroken>
  );
}

/** A text that the renderer cannot take is shown as it is written; the chat goes on. */
class PlainWhenBroken extends Component<{ text: string; children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError() {
    return { broken: true };
  }

  override render() {
    return this.state.broken ? <Plain text={this.props.text} /> : this.props.children;
  }
}
