import { useQuery } from "@tanstack/react-query";
import { settingsQuery } from "../app/queries";
import { exactly } from "../ui/words";
import { Loading } from "./Loading";
import { RuntimeFields } from "./RuntimeFields";
import { SaveSettings, useSave } from "./SaveSettings";
import { useDraft } from "./draftStore";
import { GROUPS } from "./fields";

/** Every setting of the agent runtime. */
export function Runtime() {
  const settings = useQuery(settingsQuery);
  const draft = useDraft();
  const saving = useSave(settings.data, draft);
  return (
    <>
      <div className="scroll">
        <div className="settings-page">
          <p className="dim">The next run uses what is saved; a run in progress keeps what it began with.</p>
          <Loading query={settings} what="the settings">
            {(stored) => (
              <>
                {GROUPS.map(({ title, note, fields }) => (
                  <section key={title} className="settings-group">
                    <h2>{title}</h2>
                    {note && <p className="small dim">{note}</p>}
                    <RuntimeFields fields={fields} stored={stored} draft={draft} refused={saving.refused} />
                  </section>
                ))}
                <p className="xs faint">
                  Revision {stored.revision}, saved {exactly(stored.updatedAt)}
                </p>
              </>
            )}
          </Loading>
        </div>
      </div>
      {settings.data && <SaveSettings stored={settings.data} draft={draft} saving={saving} />}
    </>
  );
}
