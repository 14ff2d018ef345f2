/** Everything a person can change; `section` is the part of the address after /settings. */
export default function Settings({ section }: { section: string | null }) {
  return (
    <main className="main">
      <header className="bar">
        <h1>Settings</h1>
        <span className="faint">{section}</span>
      </header>
    </main>
  );
}
