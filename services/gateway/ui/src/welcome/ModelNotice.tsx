import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { modelsQuery } from "../app/queries";
import { Coded } from "../ui/Coded";
import { Icon } from "../ui/Icon";

/** Above the composer while no model answers: why, and where one is connected. What is written stays. */
export function ModelNotice() {
  const { data } = useQuery(modelsQuery);
  if (!data || data.known) return null;
  return (
    <div className="remark wait" role="status">
      <Icon name="model" />
      <span className="grow">
        <Coded text={data.note || "No model answers."} />
      </span>
      <Link href="/settings/models" className="btn dense">
        Connect a model
      </Link>
    </div>
  );
}
