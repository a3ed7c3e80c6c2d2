import { duration, errorText, plain } from "./format";

/** What of an event is put into words. */
export interface Told {
  event_type: string;
  entity_id: string;
  step_run_id: string | null;
  iteration: number | null;
  attempt: number | null;
  duration_ms: number | null;
  payload: Record<string, unknown>;
}

const DONE: Record<string, string> = {
  "step.forced": "completed by hand",
  "step.repaired": "repaired: its retry succeeded",
  "loop.item.repaired": "an item was repaired: its retry succeeded",
  "report.late": "a worker reported after it had lost its lease",
};
/** Events that have a mark of their own in the timeline. */
export const MARKED = Object.keys(DONE);

/** One line on what an event says. */
export function summary(event: Told): string {
  const payload = event.payload;
  const parts: string[] = [];
  if (event.iteration !== null && event.iteration !== undefined) parts.push(`item ${event.iteration}`);
  if (event.attempt) parts.push(`attempt ${event.attempt}`);
  const line = payload.line ?? payload.text ?? payload.message;
  if (event.event_type === "task.logged" && typeof line === "string") parts.push(line);
  if (typeof payload.do === "string") parts.push(typeof payload.delay_ms === "number" && payload.delay_ms > 0 ? `${payload.do} in ${duration(payload.delay_ms)}` : payload.do);
  else if (typeof payload.delay_ms === "number") parts.push(`the next in ${duration(payload.delay_ms)}`);
  if (payload.error) parts.push(errorText(payload.error));
  const taken: unknown = payload.taken;
  if (Array.isArray(taken)) parts.push(taken.length ? `took arc ${taken.join(", ")}` : "took no arc");
  if (typeof payload.signal === "string") parts.push(`signal ${payload.signal}`);
  if (typeof payload.by === "string") parts.push(`by ${payload.by}`);
  if (typeof payload.reason === "string" && payload.reason) parts.push(payload.reason);
  if (event.duration_ms) parts.push(`${Math.round(event.duration_ms)} ms`);
  return plain(parts.join(" · ").slice(0, 300));
}

/** A sentence on an event: what, of which step-run, and what it says. */
export function sentence(event: Told): string {
  const of = event.step_run_id ?? (/^(step|next|loop|policy)\./.test(event.event_type) ? event.entity_id : "");
  const said = summary(event);
  return plain([DONE[event.event_type] ?? event.event_type, of ? ` of ${of}` : "", said ? `: ${said}` : ""].join(""));
}
