/** What was put into a field, and what was stored when that began. */
export interface Typed<Value> {
  value: Value;
  base: Value;
}

export type DraftOf<Stored, Field extends keyof Stored> = Readonly<Partial<Record<Field, Typed<Stored[Field]>>>>;

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** What was changed of something stored and not saved yet; `fields` are those that can be, in the order of the form. */
export function drafting<Stored extends object, Field extends keyof Stored & string>(fields: readonly Field[]) {
  type Value = Stored[Field];
  type Draft = DraftOf<Stored, Field>;

  /** What the form shows: what is stored with what was typed over it. */
  function shown(stored: Stored, draft: Draft): Stored {
    const typed = fields.flatMap((field) => (draft[field] ? [[field, draft[field].value]] : []));
    return { ...stored, ...Object.fromEntries(typed) } as Stored;
  }

  function put(draft: Draft, field: Field, value: Value, stored: Stored): Draft {
    // Put back: nothing is left to save.
    if (same(value, stored[field])) return without(draft, [field]);
    return { ...draft, [field]: { value, base: draft[field]?.base ?? stored[field] } };
  }

  /** Put several at once. */
  function putAll(draft: Draft, values: Partial<Pick<Stored, Field>>, stored: Stored): Draft {
    return fields.reduce((after, field) => (values[field] === undefined ? after : put(after, field, values[field], stored)), draft);
  }

  /** The fields that differ from what is stored, wrong ones included. */
  function changes(draft: Draft, stored: Stored): Field[] {
    return fields.filter((field) => draft[field] !== undefined && !same(draft[field].value, stored[field]));
  }

  /** Where somebody stored something else meanwhile, and not the same. */
  function conflicts(draft: Draft, stored: Stored): Field[] {
    return changes(draft, stored).filter((field) => !same(draft[field]?.base ?? null, stored[field]));
  }

  /** Only what changed. */
  function changed(draft: Draft, stored: Stored): Partial<Pick<Stored, Field>> {
    const values = changes(draft, stored).map((field) => [field, draft[field]?.value]);
    return Object.fromEntries(values) as Partial<Pick<Stored, Field>>;
  }

  /** Settle a conflict for what was typed. */
  function keepMine(draft: Draft, field: Field, stored: Stored): Draft {
    const typed = draft[field];
    return typed ? { ...draft, [field]: { ...typed, base: stored[field] } } : draft;
  }

  function without(draft: Draft, taken: readonly Field[]): Draft {
    return Object.fromEntries(Object.entries(draft).filter(([field]) => !taken.includes(field as Field))) as Draft;
  }

  /** After a save: what was sent is stored; what was typed since is kept. */
  function afterSave(draft: Draft, sent: Draft, stored: Stored): Draft {
    let rest = {} as Draft;
    for (const field of fields) {
      const typed = draft[field];
      if (typed && !same(typed.value, sent[field]?.value ?? null)) rest = { ...rest, [field]: { ...typed, base: stored[field] } };
    }
    return rest;
  }

  return { shown, put, putAll, changes, conflicts, changed, keepMine, without, afterSave };
}

export type Drafting<Stored extends object, Field extends keyof Stored & string> = ReturnType<typeof drafting<Stored, Field>>;
