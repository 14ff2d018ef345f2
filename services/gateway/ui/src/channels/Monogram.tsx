import { initials } from "../ui/initials";
import type { ChannelMessage } from "../contracts";
import { Icon, Logo } from "../ui/Icon";

/** Who wrote, in one sign. */
export function Monogram({ kind, name = "" }: { kind: ChannelMessage["authorKind"]; name?: string }) {
  return (
    <span className={`who ${kind}`} aria-hidden="true">
      {kind === "system" ? <Logo /> : kind === "user" ? <Icon name="you" /> : initials(name)}
    </span>
  );
}
