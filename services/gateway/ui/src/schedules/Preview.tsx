import { useQuery } from "@tanstack/react-query";
import { ApiError, sentence } from "../api/client";
import { useDebounced } from "../ui/useDebounced";
import { useNow } from "../ui/useNow";
import { previewQuery } from "./queries";
import { away, local, otherZone } from "./times";

const SETTLED_MS = 300;
const TICK_MS = 15_000;

/** What the server makes of a rule, once it is typed; `refusal` says why it is none. */
export function usePreview(cron: string) {
  const rule = cron.trim();
  const settled = useDebounced(rule, SETTLED_MS);
  const { data, error, isFetching } = useQuery({ ...previewQuery(settled), enabled: settled !== "" });
  const isAsked = settled === rule;
  const refusal = isAsked && rule && error instanceof ApiError && error.status === 422 ? error.message : undefined;
  const trouble = isAsked && rule && error && !refusal ? sentence(error) : undefined;
  return { preview: isAsked && !error ? data : undefined, refusal, trouble, isAsking: rule !== "" && (!isAsked || isFetching) };
}

/** What there is to show of a rule that is none. */
export const NO_RULE = { preview: undefined, refusal: undefined, trouble: undefined, isAsking: false };

/** A rule in words, and the next times at which it is done, before anything is saved. */
export function Preview({ of: { preview, trouble, isAsking }, hasRule }: { of: ReturnType<typeof usePreview>; hasRule: boolean }) {
  const now = useNow(preview !== undefined, TICK_MS);
  const zone = preview && otherZone(preview.timezone);
  return (
    <div className="schedule-preview" role="status" aria-label="What this rule means">
      {preview ? (
        <>
          <p className="strong">{preview.words}</p>
          <ol>
            {preview.next.map((at) => (
              <li key={at}>
                <time dateTime={at}>{local(at, now)}</time>
                <span className="xs faint">{away(at, now)}</span>
              </li>
            ))}
          </ol>
          <p className="xs faint">
            {zone ? `Your time, ${zone}. The rule is read in the server's, ${preview.timezone}.` : `In the time zone of the server, ${preview.timezone}, which is yours too.`}
          </p>
        </>
      ) : (
        <p className="small faint">
          {trouble ?? (isAsking ? "Asking what it means…" : hasRule ? "The next five times are shown here once the rule is right." : "The next five times are shown here.")}
        </p>
      )}
    </div>
  );
}
