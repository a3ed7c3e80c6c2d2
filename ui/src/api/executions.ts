// What the execution page reads and does.
import { useQuery } from "@tanstack/react-query";
import { get, type Schemas, send } from "./client";

export type Execution = Schemas["Execution"];
export type EventRow = Schemas["EventRow"];
export type Told = Schemas["Told"];
export type Items = Schemas["ItemsRow"];
export type Item = Schemas["ItemRow"];
export interface Standing {
  what: string;
  name: string;
  step: string;
  waits_for: string;
  moved_by: string;
  since: number;
  until: number | null;
  signal: string | null;
  decision: boolean;
  answered_by: string | null;
  cause?: string;
  refs?: Schemas["CauseRefs"] & { steps: string[] };
  deadlines: { what: string; at?: number | null; ms?: number | null }[];
}
export interface Choice {
  seq: number;
  at: number;
  step: string;
  decided: string;
  because: string[];
}
export interface Explained {
  status: string;
  error: unknown;
  /** The first failure that no arc took, and what helps against it. */
  failure?: { step: string; error: unknown; fix: string } | null;
  standing: Standing[];
  choices: Choice[];
}
export interface Moment {
  seq: number;
  event: string | null;
  at: number | null;
  status: string;
  checksum: string;
  tokens: { token: string; step: string; state: string }[];
  ctx: Record<string, unknown>;
  changes: { path: string; before: unknown; after: unknown }[];
  more: Record<string, number>;
}
export interface Attempt {
  task: string;
  attempt: number;
  kind: string;
  seq: number;
  started_at: number | null;
  ended_at: number | null;
  ok: boolean | null;
  error: unknown;
  decision: { do: string; rule: number | null; delay_ms: number | null; read: Record<string, unknown> | null } | null;
}
export interface Run {
  run: string;
  item: number | null;
  key: string | null;
  step: string;
  number: number;
  state: string;
  args: Record<string, unknown>;
  value: unknown;
  scheduled_at: number;
  scheduled_seq: number;
  started_at: number | null;
  ended_at: number | null;
  ended_seq: number | null;
  worker: string | null;
  attempts: Attempt[];
  signal: string | null;
  child: string | null;
  until: number | null;
  result: unknown;
  ref: string | null;
  error: unknown;
  loop: Record<string, number> | null;
  input: unknown;
  /** Who completed it by hand, and why. */
  by?: string | null;
  reason?: string | null;
  letter: { message_id: string; status: string; fingerprint: string; attempts: number } | null;
}

const place = (id: string): string => `/api/executions/${encodeURIComponent(id)}`;

export const useExecution = (id: string, mark: unknown) =>
  useQuery({ queryKey: ["execution", id, mark], queryFn: () => get<Execution>(place(id)), placeholderData: (old) => old, staleTime: 1_000 });
export const useGraph = (hash: string | undefined) =>
  useQuery({ queryKey: ["graph", hash], enabled: Boolean(hash), staleTime: Infinity, gcTime: 600_000, queryFn: () => get<Schemas["Graph"]>(`/api/playbooks/${hash}/graph`) });
/** Why an execution stands where it stands: now, or after an event, which never changes. */
export const useExplain = (id: string, mark: string, seq?: number) =>
  useQuery({
    queryKey: seq ? ["explain", id, seq] : ["explain", id, "now", mark],
    enabled: mark !== "",
    staleTime: seq ? Infinity : 0,
    queryFn: ({ signal }) => get<Explained>(`${place(id)}/explain`, { seq }, signal),
    placeholderData: (old) => old,
    refetchInterval: (query) => (!seq && query.state.data?.standing.length ? 5_000 : false),
  });
export const useMoment = (id: string, seq: number) =>
  useQuery({ queryKey: ["moment", id, seq], enabled: seq > 0, staleTime: Infinity, queryFn: ({ signal }) => get<Moment>(`${place(id)}/moment`, { seq }, signal), placeholderData: (old) => old });
export const useRun = (id: string, run: string | undefined, seq: number, item?: number) =>
  useQuery<Run>({ queryKey: ["run", id, run, seq, item], enabled: Boolean(run), staleTime: Infinity, queryFn: ({ signal }) => get<Run>(`${place(id)}/runs`, { run, seq, item }, signal), placeholderData: (old) => (old?.run === run && old?.item === (item ?? null) ? old : undefined) });
export const useEvents = (id: string, query: Record<string, unknown>, enabled = true, mark: unknown = null) =>
  useQuery({ queryKey: ["events", id, query, mark], enabled, staleTime: 1_000, queryFn: ({ signal }) => get<Schemas["Events"]>(`${place(id)}/events`, query, signal), placeholderData: (old) => old });
/** One event, which never changes. */
export const useEvent = (id: string, seq: number) =>
  useQuery({
    queryKey: ["event", id, seq],
    enabled: seq > 0,
    staleTime: Infinity,
    queryFn: async ({ signal }) => (await get<Schemas["Events"]>(`${place(id)}/events`, { after: seq - 1, limit: 1 }, signal)).events[0] ?? null,
  });
/** Every event that fits, page by page. */
export async function* allEvents(id: string, query: Record<string, unknown>): AsyncGenerator<EventRow[]> {
  for (let after: number | null | undefined = 0; after !== null && after !== undefined; ) {
    const page: Schemas["Events"] = await get<Schemas["Events"]>(`${place(id)}/events`, { ...query, after, limit: 1_000 });
    yield page.events;
    after = page.next;
  }
}
/** The items of a loop as a map; while it runs, every other second. */
export const useItems = (id: string, run: string | undefined, isOpen: boolean, mark: unknown) =>
  useQuery({ queryKey: ["items", id, run, isOpen, mark], enabled: Boolean(run), staleTime: 1_000, refetchInterval: isOpen ? 2_000 : false, queryFn: ({ signal }) => get<Items>(`${place(id)}/items`, { run, as: "map" }, signal), placeholderData: (old) => (old?.run === run ? old : undefined) });
/** A page of the items as a list. */
export const useItemRows = (id: string, run: string, query: Record<string, unknown>, mark: unknown) =>
  useQuery({ queryKey: ["item rows", id, run, query, mark], queryFn: ({ signal }) => get<Items>(`${place(id)}/items`, { run, as: "list", ...query }, signal), placeholderData: (old) => (old?.run === run ? old : undefined) });
/** One item; asked for when the pointer rests. */
export const useItem = (id: string, run: string, index: number | undefined, state: string) =>
  useQuery<Item | null>({
    queryKey: ["item", id, run, index, state],
    enabled: index !== undefined,
    staleTime: Infinity,
    queryFn: async ({ signal }) => {
      await new Promise((rested) => setTimeout(rested, 120));
      if (signal.aborted) throw new DOMException("left", "AbortError");
      return (await get<Items>(`${place(id)}/items`, { run, as: "list", after: index, limit: 1 }, signal)).rows?.[0] ?? null;
    },
  });
/** The dead letters with the same cause that wait, if there are any. */
export const useCause = (group: string | undefined) =>
  useQuery({ queryKey: ["cause", group], enabled: Boolean(group), queryFn: async ({ signal }) => (await get<Schemas["LetterGroups"]>("/api/dlq/groups", { group }, signal)).groups[0] ?? null });
export const useDiff = (id: string, seq: number, diff: number | undefined) =>
  useQuery({ queryKey: ["diff", id, seq, diff], enabled: diff !== undefined, staleTime: Infinity, queryFn: () => get<Schemas["State"]>(`${place(id)}/state`, { seq, diff }) });

export const act = <T>(id: string, verb: string, body: unknown = {}, key = ""): Promise<T> => send<T>("POST", `${place(id)}/${verb}`, body, key ? { "Idempotency-Key": key } : {});
export const PAGE = 200;
/** A page of the events. Their numbers have no gaps, so page n begins after event n * PAGE. */
export const eventsPage = (id: string, page: number, head: number) => ({
  queryKey: ["page", id, page, Math.min(head, (page + 1) * PAGE)],
  staleTime: Infinity,
  queryFn: ({ signal }: { signal: AbortSignal }) => get<Schemas["Events"]>(`${place(id)}/events`, { after: page * PAGE, limit: PAGE }, signal),
});
