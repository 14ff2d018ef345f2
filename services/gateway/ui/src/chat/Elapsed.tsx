import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { connectionQuery } from "../app/queries";
import { useNow } from "../ui/useNow";
import { duration } from "../ui/words";

const SAID_AFTER_MS = 3_000;
const EXPLAINED_AFTER_MS = 12_000;

/** How long nothing new has been seen; of the embedded model, also why that is nothing to worry about. */
export function Elapsed() {
  const [since] = useState(Date.now);
  const took = useNow(true) - since;
  const connection = useQuery({ ...connectionQuery, enabled: took > EXPLAINED_AFTER_MS });
  if (took < SAID_AFTER_MS) return null;
  const isEmbedded = connection.data?.source === "embedded";
  return (
    <span className="faint" aria-hidden="true">
      {duration(Math.floor(took / 1_000) * 1_000)}
      {isEmbedded && took > EXPLAINED_AFTER_MS && " · the embedded model runs on the processor: its first words may take two minutes"}
    </span>
  );
}
