/** Two values of one field, side by side: which one stays is for a person to say. */
export function Dispute({
  stored,
  mine,
  onKeepMine,
  onTakeStored,
}: {
  stored: string;
  mine: string;
  onKeepMine: () => void;
  onTakeStored: () => void;
}) {
  return (
    <div className="remark wait" role="alert">
      <div className="grow">
        <p>Somebody stored another value while you were typing. Both are here.</p>
        <dl className="facts both">
          <dt>Stored</dt>
          <dd>{stored}</dd>
          <dt>Yours</dt>
          <dd>{mine}</dd>
        </dl>
        <div className="line wrap">
          <button type="button" className="btn dense" onClick={onKeepMine}>
            Keep mine
          </button>
          <button type="button" className="btn dense" onClick={onTakeStored}>
            Take the stored one
          </button>
        </div>
      </div>
    </div>
  );
}
