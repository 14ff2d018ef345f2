import { useMutation } from "@tanstack/react-query";
import { useRef } from "react";
import { refusedBy } from "./refused";

export interface Creating<Field extends string> {
  /** What is wrong by field, as far as it was touched or sent. */
  wrong: Partial<Record<Field, string>>;
  /** What was not touched yet is missing, not wrong. */
  missing: Field[];
  /** Why it was not created, where that is of no field. */
  failure: Error | null;
  canCreate: boolean;
  isBusy: boolean;
  create: () => void;
}

/** Creating of something that is not stored yet. */
export function useCreating<View, Field extends string>({
  draft,
  fields,
  problems,
  send,
  onCreated,
  refused = (error) => refusedBy(error, fields),
}: {
  draft: Readonly<Partial<Record<Field, object>>>;
  fields: readonly Field[];
  /** What stands against it now, by field. */
  problems: Partial<Record<Field, string>>;
  /** One key for one draft: sent again because no answer came, it makes one. */
  send: (key: string) => Promise<View>;
  onCreated: (view: View) => void;
  refused?: (error: Error | null) => Partial<Record<Field, string>>;
}): Creating<Field> {
  const key = useRef<{ of: object; key: string } | null>(null);
  const creation = useMutation({
    mutationFn: ({ sent }: { sent: object }) => {
      if (key.current?.of !== sent) key.current = { of: sent, key: crypto.randomUUID() };
      return send(key.current.key);
    },
    onSuccess: onCreated,
  });
  // A refusal is about what was sent, not about what is typed now.
  const refusal = creation.variables?.sent === draft ? creation.error : null;
  const places = refused(refusal);
  const open = fields.filter((field) => problems[field] !== undefined);
  const touched = open.filter((field) => draft[field] !== undefined);
  const canCreate = open.length === 0 && !creation.isPending;
  return {
    wrong: { ...places, ...(Object.fromEntries(touched.map((field) => [field, problems[field]])) as Partial<Record<Field, string>>) },
    missing: open.filter((field) => draft[field] === undefined),
    failure: Object.keys(places).length === 0 ? refusal : null,
    canCreate,
    isBusy: creation.isPending,
    create: () => {
      if (canCreate) creation.mutate({ sent: draft });
    },
  };
}
