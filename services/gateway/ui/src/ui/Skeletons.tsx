import type { ReactNode } from "react";

/** Lines of the true height until something is known; nothing for the first moment. */
export function Skeletons({ count, what, className = "", children }: { count: number; what: string; className?: string; children?: ReactNode }) {
  return (
    <div className="skeletons" role="status" aria-busy="true" aria-label={`Loading ${what}`}>
      {children}
      {[...Array(count).keys()].map((index) => (
        <div key={index} className={`skeleton ${className}`} />
      ))}
    </div>
  );
}
