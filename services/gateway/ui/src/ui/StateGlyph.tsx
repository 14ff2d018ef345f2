export type State = "running" | "completed" | "stopped" | "failed" | "interrupted";
/** What does not run yet, and what nothing tries again, have shapes of their own. */
export type Glyph = State | "queued" | "dead";

/** The shape of a state; colour comes second. With a `label` it speaks, without one its word stands beside it. */
export function StateGlyph({ state, label }: { state: Glyph; label?: string }) {
  return (
    <svg
      className={`state ${state}`}
      viewBox="0 0 16 16"
      {...(label ? { role: "img", "aria-label": label } : { "aria-hidden": true })}
    >
      {label && <title>{label}</title>}
      {SHAPES[state]}
    </svg>
  );
}

const SHAPES: Record<Glyph, React.ReactNode> = {
  running: (
    <>
      <circle cx="8" cy="8" r="5.4" opacity=".28" />
      <path d="M8 2.6A5.4 5.4 0 0 1 13.4 8" />
    </>
  ),
  completed: <path d="m3.5 8.4 3 3 6-6.8" />,
  stopped: <rect x="4" y="4" width="8" height="8" rx="1.2" />,
  failed: (
    <>
      <circle cx="8" cy="8" r="6" fill="currentColor" />
      <path d="m6 6 4 4M10 6l-4 4" stroke="var(--on-fail)" />
    </>
  ),
  queued: <circle cx="8" cy="8" r="5.4" strokeDasharray="2 2.24" />,
  dead: (
    <>
      <path d="M5.3 2h5.4L14 5.3v5.4L10.7 14H5.3L2 10.7V5.3z" fill="currentColor" />
      <path d="m6 6 4 4M10 6l-4 4" stroke="var(--on-fail)" />
    </>
  ),
  interrupted: <path d="M2.8 6.6A5.4 5.4 0 0 1 8 2.6M13.2 9.4A5.4 5.4 0 0 1 8 13.4M4.5 11.5l7-7" />,
};
