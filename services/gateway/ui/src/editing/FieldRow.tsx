import type { ReactNode } from "react";
import { Dispute } from "./Dispute";

/** A label, a control, what is wrong with it, and what somebody else stored there meanwhile. */
export function FieldRow({
  label,
  labelFor,
  labelId,
  beside = "",
  hint,
  error,
  isChanged,
  dispute = null,
  children,
}: {
  label: string;
  /** The control's id; what describes it is `<id>-hint <id>-error`. Without one the label names the group `labelId`. */
  labelFor?: string | undefined;
  labelId?: string | undefined;
  beside?: ReactNode;
  hint?: ReactNode;
  error?: string | undefined;
  isChanged: boolean;
  dispute?: { stored: string; mine: string; onKeepMine: () => void; onTakeStored: () => void } | null;
  children: ReactNode;
}) {
  const id = labelFor ?? labelId;
  return (
    <div className={`field setting ${isChanged ? "changed" : ""}`}>
      <div className="setting-head">
        {labelFor ? <label htmlFor={labelFor}>{label}</label> : <span className="strong" id={labelId}>{label}</span>}
        {isChanged && <span className="chip live">not saved</span>}
        <span className="end xs faint">{beside}</span>
      </div>
      {children}
      {hint && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error !== undefined && (
        <p className="error" role="alert" id={`${id}-error`}>
          {error}
        </p>
      )}
      {dispute && <Dispute {...dispute} />}
    </div>
  );
}
