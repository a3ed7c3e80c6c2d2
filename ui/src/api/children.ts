// The child executions of a step-run, from the events of their parent.
import { get, type Schemas } from "./client";

export interface Child {
  id: string;
  path: string;
  /** The item of a loop that started it. */
  item: number | null;
  started: number;
  ended: number | null;
  /** Its state; nothing if its end may be among events that were not read. */
  status: string;
}

export const MOST_CHILDREN = 50;
const MOST_EVENTS = 1_000;

/** The first children of a step-run; every other second while it, or one of them, is open. */
export const childrenOf = (id: string, run: string, isOpen: boolean) => ({
  queryKey: ["children", id, run, isOpen],
  staleTime: 1_000,
  refetchInterval: (query: { state: { data?: Child[] } }) => (isOpen || query.state.data?.some((child) => child.status === "running") ? 2_000 : (false as const)),
  queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Child[]> => {
    const query = { run, type: ["child.started", "child.finished"], limit: MOST_EVENTS };
    const { events } = await get<Schemas["Events"]>(`/api/executions/${encodeURIComponent(id)}/events`, query, signal);
    const ends = new Map(events.filter((event) => event.event_type === "child.finished").map((event) => [event.entity_id, event]));
    const begun = events.filter((event) => event.event_type === "child.started").slice(0, MOST_CHILDREN);
    return begun.map((event) => {
      const end = ends.get(event.entity_id);
      const open = events.length < MOST_EVENTS ? "running" : "";
      return {
        id: event.entity_id,
        path: String((event.payload as { path?: string }).path ?? ""),
        item: event.iteration,
        started: event.timestamp,
        ended: end?.timestamp ?? null,
        status: end ? String((end.payload as { status?: string }).status ?? "") : open,
      };
    });
  },
});
