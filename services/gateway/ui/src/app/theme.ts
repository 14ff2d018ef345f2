import { store, stored } from "../ui/stored";

export type Theme = "system" | "light" | "dark";
const STORED = "popagent.theme";

export function theme(): Theme {
  const value = stored(STORED);
  return value === "light" || value === "dark" ? value : "system";
}

export function setTheme(value: Theme): void {
  store(STORED, value === "system" ? "" : value);
  applyTheme(value);
}

export function applyTheme(value: Theme = theme()): void {
  if (value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = value;
}
