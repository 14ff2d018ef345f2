import { ApiError, api } from "../api/client";

interface Revised {
  revision: number;
}

/** What is stored, where a change was refused since it was made to another revision; it stands as `name` beside the error. */
export function storedInstead<View extends Revised>(error: unknown, name: string): View | undefined {
  if (!(error instanceof ApiError) || error.code !== "revision_conflict") return undefined;
  return error.body[name] as View | undefined;
}

/** Change something stored: whatever else of it was changed meanwhile takes nothing from this wish. */
export async function insist<View extends Revised>(path: string, name: string, revision: number, wish: object): Promise<View> {
  const change = (against: number) => api.patch<View>(path, { revision: against, ...wish });
  try {
    return await change(revision);
  } catch (error) {
    const stored = storedInstead<View>(error, name);
    if (!stored) throw error;
    return change(stored.revision);
  }
}
