import { ApiError, request, sentence } from "../api/client";
import { say } from "../ui/toasts";

const finishing = new Map<string, (keepalive: boolean) => void>();

/** Delete what is out of sight by now, once the time to undo is over or the page is left. */
export function deleteSoon({
  path,
  name,
  back,
  gone,
}: {
  /** Where it is on the gateway. */
  path: string;
  name: string;
  /** Show it again: it was not deleted. */
  back: () => void;
  /** It is deleted, by whomever. */
  gone: () => void;
}): void {
  finishing.set(path, (keepalive) => {
    finishing.delete(path);
    request("DELETE", path, { keepalive }).then(gone, (error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return gone();
      back();
      say(`“${name}” could not be deleted: ${sentence(error)}`);
    });
  });
  const undo = () => {
    finishing.delete(path);
    back();
  };
  say(`“${name}” is deleted.`, { label: "Undo", run: undo }, () => finishing.get(path)?.(false));
}

addEventListener("pagehide", () => {
  for (const finish of finishing.values()) finish(true);
});
