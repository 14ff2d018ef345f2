import type { ReactNode } from "react";
import { sentence } from "../api/client";
import { Icon } from "../ui/Icon";
import { Skeletons } from "../ui/Skeletons";

/** Skeletons until something is known; what failed says so, above what was known before. */
export function Loading<T>({
  query,
  what,
  children,
}: {
  query: { data: T | undefined; error: Error | null; failureReason: Error | null; isFetching: boolean; refetch: () => unknown };
  what: string;
  children: (data: T) => ReactNode;
}) {
  const trouble = query.error ?? query.failureReason;
  return (
    <>
      {trouble && (
        <div className="remark fail" role="alert">
          <Icon name="alert" />
          <span className="grow">
            {sentence(trouble)}
            {query.data !== undefined && " What was known before is shown."}
          </span>
          <button type="button" className="btn dense" disabled={query.isFetching} onClick={() => void query.refetch()}>
            {query.isFetching ? "Asking…" : "Ask again"}
          </button>
        </div>
      )}
      {query.data !== undefined
        ? children(query.data)
        : !trouble && (
            <Skeletons count={4} what={what} />
          )}
    </>
  );
}
