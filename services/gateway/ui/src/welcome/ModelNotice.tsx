import { Link } from "wouter";
import { Coded } from "../ui/Coded";
import { Icon } from "../ui/Icon";
import { useModelTrouble } from "./modelTrouble";

/** Above the composer while no model answers: why, and what to do. What is written stays. */
export function ModelNotice() {
  const trouble = useModelTrouble();
  if (!trouble) return null;
  return (
    <div className="remark wait" role="status">
      <Icon name="model" />
      <div className="grow">
        <p>
          <Coded text={trouble.reason} />
        </p>
        {trouble.fix && (
          <p className="small">
            <Coded text={trouble.fix} />
          </p>
        )}
      </div>
      <Link href="/settings/models" className="btn dense">
        Connect a model
      </Link>
    </div>
  );
}
