import { type ComponentProps, type ReactElement, memo, useRef } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { Streamdown, type StreamdownProps, defaultRemarkPlugins } from "streamdown";
import { Link } from "wouter";
import { CopyButton } from "../ui/CopyButton";
import { Icon } from "../ui/Icon";
import { visible } from "../ui/visible";
import { Raw } from "./Plain";
import { type Pieces, cut } from "./pieces";
import { isTangled } from "./tangled";
import { usePaced } from "./usePaced";

// What a model writes is never HTML: tags are shown as the text they are, and nothing is loaded from anywhere.
const SCHEMES = /^(https?:|mailto:|#)/i;
// A task of this page, as popagent itself names it.
const TASK = /^\/tasks\/[\w-]+$/;

/** Markdown as it grows; only the last open block is parsed again. */
const Markdown = memo(function Markdown({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  const root = useRef<HTMLDivElement>(null);
  const known = useRef<Pieces | null>(null);
  known.current = cut(usePaced(text, isGrowing, root), known.current);
  const { pieces } = known.current;
  return (
    <div className="prose" ref={root}>
      {pieces.map((piece, index) => (
        // A piece never moves to another place.
        <Piece key={index} text={piece} isGrowing={isGrowing && index === pieces.length - 1} />
      ))}
    </div>
  );
});

const Piece = memo(function Piece({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  if (isTangled(text)) return <Raw text={text} />;
  return (
    <Streamdown
      className="piece"
      mode="streaming" // also when it is done: in blocks of its own, so that nothing moves at the end
      parseIncompleteMarkdown={isGrowing}
      controls={false}
      lineNumbers={false}
      normalizeHtmlIndentation={false}
      rehypePlugins={REHYPE}
      remarkPlugins={REMARK}
      components={COMPONENTS}
      urlTransform={harmless}
      dir="auto"
    >
      {visible(text)}
    </Streamdown>
  );
});

export default Markdown;

// Every construct that is common, one at a time.
const SAMPLES = [
  "## One\n\nA *few* words with **weight**, `code` and [an address](https://example.com).",
  "1. One\n2. Two\n   - three\n\n> Four",
  "| a | b |\n|---|---|\n| 1 | 2 |",
  "```text\none\n```",
];

/** Draws samples out of sight, so that what draws the first answer was compiled before; yields after each. */
export function* rehearse(): Generator<void> {
  for (const text of SAMPLES) {
    const root = createRoot(document.createElement("div"));
    flushSync(() => root.render(<Markdown text={text} isGrowing={false} />));
    root.unmount();
    yield;
  }
}

interface Node {
  type: string;
  value?: string;
  children?: Node[];
}

// A block is drawn again when one of these is another object: they are made once.
const REHYPE: NonNullable<StreamdownProps["rehypePlugins"]> = [];
const REMARK: NonNullable<StreamdownProps["remarkPlugins"]> = [...Object.values(defaultRemarkPlugins), showHtmlAsText];

function harmless(url: string): string | null {
  return SCHEMES.test(url) || TASK.test(url) ? url : null;
}

function showHtmlAsText() {
  const walk = (node: Node): void => {
    if (node.type === "html") node.type = "text";
    for (const child of node.children ?? []) walk(child);
  };
  return walk;
}

type Props<T extends keyof React.JSX.IntrinsicElements> = ComponentProps<T> & { node?: unknown };

const COMPONENTS: NonNullable<StreamdownProps["components"]> = {
  // Its tooltip is the true address, whatever title the model gave it.
  a: ({ node: _, href, children }: Props<"a">) =>
    href && TASK.test(href) ? (
      <Link className="link" href={href} title={href}>
        {children}
      </Link>
    ) : href ? (
      <a
        className="link"
        href={href}
        title={href}
        rel="noopener noreferrer nofollow"
        {...(href.startsWith("#") ? {} : { target: "_blank" })}
      >
        {children}
      </a>
    ) : (
      <span>{children}</span>
    ),
  // A picture is an address that a stranger chose: it is shown as one, never fetched.
  img: ({ node: _, src, alt }: Props<"img">) => (
    <span className="picture">
      <Icon name="link" />
      {alt || "Picture"}
      {typeof src === "string" && SCHEMES.test(src) && <span className="faint"> {src}</span>}
    </span>
  ),
  pre: ({ node: _, children }: Props<"pre">) => {
    const { className, children: code } = (children as ReactElement<ComponentProps<"code">> | null)?.props ?? {};
    return <CodeBlock language={/language-(\S+)/.exec(className ?? "")?.[1] ?? ""} code={plain(code)} />;
  },
  code: ({ node: _, children }: Props<"code">) => <code>{children}</code>,
  table: ({ node: _, children }: Props<"table">) => (
    <div className="table" tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
};
for (const tag of ["h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "blockquote", "hr", "strong", "em", "del", "thead", "tbody", "tr", "th", "td", "sup", "sub"]) {
  // The library's own elements carry classes of a framework that is not here.
  COMPONENTS[tag] = tag as keyof React.JSX.IntrinsicElements;
}

function plain(children: unknown): string {
  if (Array.isArray(children)) return children.map(plain).join("");
  return typeof children === "string" ? children : "";
}

function CodeBlock({ language, code }: { language: string; code: string }) {
  return (
    <figure className="code">
      <figcaption>
        <span>{language || "text"}</span>
        <CopyButton text={code} label="Copy code" />
      </figcaption>
      <pre tabIndex={0}>
        <code>{code.replace(/\n$/, "")}</code>
      </pre>
    </figure>
  );
}
