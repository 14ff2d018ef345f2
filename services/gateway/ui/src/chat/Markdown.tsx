import { type ComponentProps, type ReactElement, memo, useRef } from "react";
import { Streamdown, type StreamdownProps, defaultRemarkPlugins } from "streamdown";
import { CopyButton } from "../ui/CopyButton";
import { Icon } from "../ui/Icon";
import { visible } from "../ui/visible";
import { type Pieces, cut } from "./pieces";
import { isTangled } from "./tangled";

// What a model writes is never HTML: tags are shown as the text they are, and nothing is loaded from anywhere.
const SCHEMES = /^(https?:|mailto:|#)/i;

/** Markdown as it grows; only the last open block is parsed again. */
const Markdown = memo(function Markdown({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  const known = useRef<Pieces | null>(null);
  known.current = cut(text, known.current);
  const { pieces } = known.current;
  return (
    <div className="prose">
      {pieces.map((piece, index) => (
        // A piece never moves to another place.
        <Piece key={index} text={piece} isGrowing={isGrowing && index === pieces.length - 1} />
      ))}
    </div>
  );
});

const Piece = memo(function Piece({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  if (isTangled(text)) {
    return (
      <p className="raw" dir="auto">
        {visible(text)}
      </p>
    );
  }
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

interface Node {
  type: string;
  value?: string;
  children?: Node[];
}

// A block is drawn again when one of these is another object: they are made once.
const REHYPE: NonNullable<StreamdownProps["rehypePlugins"]> = [];
const REMARK: NonNullable<StreamdownProps["remarkPlugins"]> = [...Object.values(defaultRemarkPlugins), showHtmlAsText];

function harmless(url: string): string | null {
  return SCHEMES.test(url) ? url : null;
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
    href ? (
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
