import { useMutation } from "@tanstack/react-query";
import { ApiError, api } from "../api/client";
import { say } from "../ui/toasts";
import type { Saving } from "./SaveBar";
import { storedInstead } from "./revisions";

/** Saving of something stored that is edited: `refusal` is what the server did not accept of what is typed now. */
export function useSaving<View extends { revision: number }, Draft extends object>({
  path,
  name,
  draft,
  patch,
  keep,
  onSaved,
  onGone = () => {},
  told,
}: {
  /** Where it is on the gateway. */
  path: string;
  /** What it is called in the answer that tells of another revision. */
  name: string;
  draft: Draft;
  patch: () => object;
  /** Show it as it is stored. */
  keep: (stored: View) => void;
  /** It is stored with what was `sent`. */
  onSaved: (stored: View, sent: Draft) => void;
  onGone?: () => void;
  /** What is said then. */
  told: string;
}): Saving & { refusal: Error | null } {
  const save = useMutation({
    mutationFn: ({ body }: { body: object; sent: Draft }) => api.patch<View>(path, body),
    onSuccess: (stored, { sent }) => {
      keep(stored);
      onSaved(stored, sent);
      say(told);
    },
    onError: (error) => {
      const stored = storedInstead<View>(error, name);
      if (stored) keep(stored);
      else if (error instanceof ApiError && error.status === 404) onGone();
    },
  });
  return {
    save: () => save.mutate({ body: patch(), sent: draft }),
    reset: () => save.reset(),
    busy: save.isPending,
    error: save.error,
    // A refusal is about what was sent, not about what is typed now.
    refusal: save.variables?.sent === draft ? save.error : null,
  };
}
