export type Theme = "system" | "light" | "dark";
const STORED = "popagent.theme";

export function theme(): Theme {
  try {
    const stored = localStorage.getItem(STORED);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system"; // storage is forbidden here
  }
}

export function setTheme(value: Theme): void {
  try {
    if (value === "system") localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, value);
  } catch {
    // it lasts until the next load then
  }
  applyTheme(value);
}

export function applyTheme(value: Theme = theme()): void {
  if (value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = value;
}
