/** What an empty chat says. */
export function Welcome({ onAsk }: { onAsk: (text: string) => void }) {
  return (
    <div className="empty">
      <h2>Ask about this workspace, or give it work.</h2>
      <button type="button" className="btn" onClick={() => onAsk("What does this project do? Read the README.")}>
        What does this project do? Read the README.
      </button>
    </div>
  );
}
