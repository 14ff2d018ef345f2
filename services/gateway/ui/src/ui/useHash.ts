import { useEffect, useState } from "react";

/** The fragment of the address; another object each time it is asked for, also when it is the same. */
export function useHash(): { hash: string } {
  const [target, setTarget] = useState(() => ({ hash: location.hash }));
  useEffect(() => {
    const moved = () => setTarget({ hash: location.hash });
    // The router tells of its steps by the first of these.
    const names = ["pushState", "popstate", "hashchange"];
    for (const name of names) addEventListener(name, moved);
    return () => {
      for (const name of names) removeEventListener(name, moved);
    };
  }, []);
  return target;
}
