/** Icons of our own on a 16-unit grid, drawn with the colour of the text. */
const PATHS = {
  chat: "M2.5 4.5a2 2 0 0 1 2-2h7a2 2 0 0 1 2 2v5a2 2 0 0 1-2 2H7.2L4 14v-2.6a1.6 1.6 0 0 1-1.5-1.6z",
  inbox: "M2.5 9.3 4.2 3.7a1.5 1.5 0 0 1 1.5-1.1h4.6a1.5 1.5 0 0 1 1.5 1.1l1.7 5.6V12a1.5 1.5 0 0 1-1.5 1.5H4A1.5 1.5 0 0 1 2.5 12zM2.7 9.3h2.9l1 1.8h2.8l1-1.8h2.9",
  tasks: "M7 4h6.5M7 8h6.5M7 12h6.5M2.3 4l.9.9 1.5-1.7M2.3 8l.9.9 1.5-1.7M2.3 12l.9.9 1.5-1.7",
  clock: "M13.6 8A5.6 5.6 0 1 1 2.4 8a5.6 5.6 0 0 1 11.2 0zM8 5v3.2l2 1.3",
  channels: "M6.4 2.6 5 13.4M11 2.6 9.6 13.4M2.9 5.9h10.7M2.4 10.1h10.7",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  you: "M8 7.4a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3.4 13.6c.4-2.8 2.1-4.2 4.6-4.2s4.2 1.4 4.6 4.2",
  agents: "M8 7a2.2 2.2 0 1 0 0-4.4A2.2 2.2 0 0 0 8 7zM3.6 13.4c.4-2.6 2-4 4.4-4s4 1.4 4.4 4M12 7.4a1.8 1.8 0 0 0 .6-3.4M13.4 9.4c1 .6 1.4 1.6 1.6 2.8M4 7.4A1.8 1.8 0 0 1 3.4 4M2.6 9.4c-1 .6-1.4 1.6-1.6 2.8",
  observe: "M1.8 8.5h2.6l1.5-4.2 3 7.6 2-5 .8 1.6h2.5",
  settings: "M2.5 4.6h5.8M12.2 4.6h1.3M2.5 11.4h1.3M7.7 11.4h5.8M12 4.6a1.8 1.8 0 1 1-3.6 0 1.8 1.8 0 0 1 3.6 0zM7.6 11.4a1.8 1.8 0 1 1-3.6 0 1.8 1.8 0 0 1 3.6 0z",
  search: "M11.2 7A4.2 4.2 0 1 1 2.8 7a4.2 4.2 0 0 1 8.4 0zM10.2 10.2l3.3 3.3",
  plus: "M8 3.2v9.6M3.2 8h9.6",
  right: "m6 4 4 4-4 4",
  left: "M10 3.5 5.5 8l4.5 4.5",
  down: "m4 6 4 4 4-4",
  up: "m4 10 4-4 4 4",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  folder: "M2 4.6A1.5 1.5 0 0 1 3.5 3h2.6l1.5 1.8h4.9A1.5 1.5 0 0 1 14 6.3v5.2a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 2 11.5z",
  pen: "m3 13 .7-2.9 7-7a1.5 1.5 0 0 1 2.2 2.2l-7 7z",
  retry: "M13 8a5 5 0 1 1-1.5-3.6M13 2.6v2.6h-2.6",
  copy: "M5.5 5.5v-2a1 1 0 0 1 1-1h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-2M3.5 5.5h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-6a1 1 0 0 1-1-1v-6a1 1 0 0 1 1-1z",
  check: "m3.5 8.4 3 3 6-6.8",
  close: "m4 4 8 8M12 4l-8 8",
  archive: "M2.5 3h11v3h-11zM3.5 6v7h9V6M6.5 9h3",
  trash: "M2.8 4.2h10.4M6 4V2.6h4V4M4.2 4.4l.6 9h6.4l.6-9M6.6 7v4M9.4 7v4",
  download: "M8 2.5v7.6M4.8 7.2 8 10.4l3.2-3.2M3 13.4h10",
  link: "M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2-2a2.6 2.6 0 0 0-3.7-3.7l-.8.8M9.2 6.8a2.6 2.6 0 0 0-3.7 0l-2 2a2.6 2.6 0 0 0 3.7 3.7l.8-.8",
  tool: "M9.8 3a3.4 3.4 0 0 0-3 4.9L2.6 12a1.3 1.3 0 0 0 1.9 1.9L8.6 9.8A3.4 3.4 0 0 0 13 5.3l-2 2-2-.6-.5-2z",
  thought: "M5 12.6h6M6.2 14.4h3.6M8 1.8a4.4 4.4 0 0 0-2.6 8c.4.3.6.7.6 1.2h4c0-.5.2-.9.6-1.2a4.4 4.4 0 0 0-2.6-8z",
  model: "M4 4h8v8H4zM6.5 1.8V4M9.5 1.8V4M6.5 12v2.2M9.5 12v2.2M1.8 6.5H4M1.8 9.5H4M12 6.5h2.2M12 9.5h2.2",
  hook: "M11.4 3.6a1.4 1.4 0 1 1-2.8 0 1.4 1.4 0 0 1 2.8 0zM10 5v5.4a3.3 3.3 0 0 1-6.6 0V8.4l2 2",
  key: "M9.9 6.1a3.2 3.2 0 1 1-6.4 0 3.2 3.2 0 0 1 6.4 0zM9 8.4l4.4 4.4M11.6 11l-1.3 1.3",
  sun: "M10.8 8a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 0 1 5.6 0zM8 1.6v1.2M8 13.2v1.2M1.6 8h1.2M13.2 8h1.2M3.5 3.5l.8.8M11.7 11.7l.8.8M12.5 3.5l-.8.8M4.3 11.7l-.8.8",
  alert: "M8 2.2 14.4 13.4H1.6zM8 6.4v3.2M8 11.6v.01",
  branch: "M6.2 4a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0zM6.2 12A1.6 1.6 0 1 1 3 12a1.6 1.6 0 0 1 3.2 0zM13 5.4a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0zM4.6 5.6v4.8M11.4 7c0 2.4-2.2 2.8-4.4 3.1",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, className = "" }: { name: IconName; className?: string }) {
  return (
    <svg className={`icon ${className}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function StopIcon() {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      <rect x="4.2" y="4.2" width="7.6" height="7.6" rx="1.2" fill="currentColor" />
    </svg>
  );
}

export function Logo() {
  return (
    <svg className="logo" viewBox="0 0 20 20" aria-hidden="true">
      <circle cx="10" cy="10" r="8.6" fill="none" stroke="currentColor" strokeWidth="1.8" />
      <circle cx="10" cy="6.6" r="2.2" fill="currentColor" />
      <circle cx="6.4" cy="12.4" r="1.6" fill="currentColor" />
      <circle cx="13.6" cy="12.4" r="1.6" fill="currentColor" />
    </svg>
  );
}
