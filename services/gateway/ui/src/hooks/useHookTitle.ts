import { useQuery } from "@tanstack/react-query";
import { NEW } from "./form";
import { hooksQuery } from "./queries";

/** What the screen of one hook is called; null where it is that of all, or not known yet. */
export function useHookTitle(item: string | null): string | null {
  const { data } = useQuery({ ...hooksQuery, enabled: item !== null });
  return item === NEW ? "New hook" : (data?.items.find((hook) => hook.id === item)?.name ?? null);
}
