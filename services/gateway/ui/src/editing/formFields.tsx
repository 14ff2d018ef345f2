import { type ReactNode, useId } from "react";
import { FieldRow } from "./FieldRow";
import { type DraftOf, type Drafting } from "./draft";

/** What is edited: `id` names its draft, `stored` is what it is compared with. */
export interface Form<Stored extends object, Field extends keyof Stored & string> {
  id: string;
  stored: Stored;
  draft: DraftOf<Stored, Field>;
  wrong: Partial<Record<Field, string>>;
  isNew: boolean;
}

/** The fields of one kind of form: each says what is wrong with it and what else is stored, and puts what is typed into the draft. */
export function formFields<Stored extends object, Field extends keyof Stored & string>({
  drafting: { shown, put, changes, conflicts, keepMine, without },
  setDraft,
  labels,
  inWords,
}: {
  drafting: Drafting<Stored, Field>;
  setDraft: (id: string, change: (before: DraftOf<Stored, Field>) => DraftOf<Stored, Field>) => void;
  labels: Readonly<Record<Field, string>>;
  /** A value as it is read in a sentence. */
  inWords: (field: Field, value: Stored[Field]) => string;
}) {
  type OfThis = Form<Stored, Field>;

  function change<F extends Field>({ id, stored }: OfThis, field: F, value: Stored[F]): void {
    setDraft(id, (before) => put(before, field, value, stored));
  }

  function Row({
    form: { id, stored, draft, wrong, isNew },
    field,
    children,
    ...rest
  }: {
    form: OfThis;
    field: Field;
    /** Instead of the usual one. */
    label?: string;
    labelFor?: string;
    labelId?: string;
    beside?: ReactNode;
    hint?: ReactNode;
    children: ReactNode;
  }) {
    const typed = draft[field];
    return (
      <FieldRow
        label={labels[field]}
        error={wrong[field]}
        isChanged={!isNew && changes(draft, stored).includes(field)}
        dispute={
          typed && conflicts(draft, stored).includes(field)
            ? {
                stored: inWords(field, stored[field]),
                mine: inWords(field, typed.value),
                onKeepMine: () => setDraft(id, (before) => keepMine(before, field, stored)),
                onTakeStored: () => setDraft(id, (before) => without(before, [field])),
              }
            : null
        }
        {...rest}
      >
        {children}
      </FieldRow>
    );
  }

  /** A text; `code` is for machines, a `number` stands before its unit. */
  function TextField({
    form,
    field,
    kind = "prose",
    unit,
    rows,
    className = "",
    placeholder,
    isNullable = false,
    ...rest
  }: {
    form: OfThis;
    field: Field;
    kind?: "prose" | "code" | "number";
    unit?: string;
    rows?: number;
    className?: string;
    placeholder?: string;
    /** Empty is stored as null. */
    isNullable?: boolean;
    label?: string;
    hint?: ReactNode;
    beside?: ReactNode;
  }) {
    const id = useId();
    const control = {
      id,
      className: `input ${kind === "code" ? "mono" : ""} ${className}`,
      value: String(shown(form.stored, form.draft)[field] ?? ""),
      placeholder,
      autoComplete: "off",
      spellCheck: kind === "prose",
      dir: kind === "prose" ? "auto" : undefined,
      inputMode: kind === "number" ? ("numeric" as const) : undefined,
      "aria-invalid": form.wrong[field] !== undefined,
      "aria-describedby": `${id}-hint ${id}-error`,
      onChange: ({ target: { value } }: { target: { value: string } }) => change(form, field, (isNullable && value === "" ? null : value) as Stored[Field]),
    };
    const input = rows ? <textarea rows={rows} {...control} /> : <input {...control} />;
    return (
      <Row form={form} field={field} labelFor={id} {...rest}>
        {kind === "number" ? (
          <span className="measured">
            {input}
            {unit && <span className="small dim">{unit}</span>}
          </span>
        ) : (
          input
        )}
      </Row>
    );
  }

  /** Something that is on or off, in the words of its two states. */
  function Flag({ form, field, on = "On", off = "Off", hint }: { form: OfThis; field: Field; on?: string; off?: string; hint: string }) {
    const id = useId();
    const isOn = shown(form.stored, form.draft)[field] === true;
    return (
      <Row form={form} field={field} labelFor={id} hint={hint}>
        <label className="check">
          <input
            id={id}
            type="checkbox"
            role="switch"
            checked={isOn}
            aria-describedby={`${id}-hint`}
            onChange={(event) => change(form, field, event.target.checked as Stored[Field])}
          />
          <span aria-hidden="true">{isOn ? on : off}</span>
        </label>
      </Row>
    );
  }

  return { change, Row, TextField, Flag };
}
