// Lines that tasks printed or logged and the errors of tasks, as `noetl logs` shows them; colours of terminals as parts of a line.
import { errorText, plain } from "./format";

export interface LogLine {
  /** The event that holds the line: its moment. */
  seq: number;
  at: number;
  level: string;
  step: string;
  run: string;
  task: string;
  item: number | null;
  attempt: number | null;
  text: string;
}
interface Logged {
  seq: number;
  event_type: string;
  timestamp: number;
  entity_id: string;
  step?: string | null;
  step_run_id?: string | null;
  iteration?: number | null;
  attempt?: number | null;
  payload: Record<string, unknown>;
}
export const LOG_TYPES = ["task.logged", "task.attempt.failed", "task.failed", "step.failed"];
export const LEVELS = ["debug", "info", "warning", "error"] as const;
export type Level = (typeof LEVELS)[number];
/** How grave a level is; one that is not known is information. */
export const rank = (level: string): number => ({ debug: 0, info: 1, warning: 2, warn: 2, error: 3, critical: 3, fatal: 3 })[level.toLowerCase()] ?? 1;

/** Reads the lines of events in their order; errors that only repeat one of before are left out. */
export class LogReader {
  readonly #last = new Map<string, { place: string; message: string }>();

  read(event: Logged): LogLine[] {
    const run = event.step_run_id ?? "";
    const place = { seq: event.seq, step: event.step ?? run.replace(/#\d+$/, ""), run, task: event.entity_id, item: event.iteration ?? null, attempt: event.attempt ?? null };
    if (event.event_type === "task.logged") {
      const found = (Array.isArray(event.payload.lines) ? event.payload.lines : []) as [number, string, string][];
      const lines = found.map(([at, level, text]) => ({ ...place, at, level, text: String(text) }));
      const dropped = event.payload.dropped;
      return dropped ? [...lines, { ...place, at: event.timestamp, level: "warning", text: `${String(dropped)} more lines were dropped` }] : lines;
    }
    return this.#failed(event, place);
  }

  #failed(event: Logged, place: Omit<LogLine, "at" | "level" | "text">): LogLine[] {
    const error = event.payload.error;
    if (!error) return [];
    const message = errorText(error);
    const before = this.#last.get(place.run);
    const name = `${place.task} ${place.item ?? ""} ${place.attempt ?? ""}`;
    if (event.event_type === "step.failed") {
      if (before && message.endsWith(before.message)) return [];
    } else if (before?.place === name) return [];
    else this.#last.set(place.run, { place: name, message });
    return [{ ...place, at: event.timestamp, level: "error", text: message }];
  }
}

export interface Part {
  text: string;
  hue: string;
  bold: boolean;
}
const HUES = ["grey", "red", "green", "amber", "blue", "violet", "blue", ""];
// A colour, any other control sequence, or the title of a window; all else of a terminal is shown as an escape.
const SEQUENCE = /\u001b\[([0-9;]*)m|\u001b\[[0-9;?]*[A-Za-z]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g;

/** Split a line at the colours that a terminal would show; no other control character is obeyed. */
export function ansi(text: string): Part[] {
  const parts: Part[] = [];
  let hue = "";
  let bold = false;
  let from = 0;
  const put = (to: number) => to > from && parts.push({ text: plain(text.slice(from, to)), hue, bold });
  for (const found of text.matchAll(SEQUENCE)) {
    put(found.index);
    from = found.index + found[0].length;
    if (found[1] === undefined) continue;
    const codes = found[1].split(";").map(Number);
    for (let at = 0; at < codes.length; at += 1) {
      const code = codes[at] ?? 0;
      if (code === 0) [hue, bold] = ["", false];
      else if (code === 1) bold = true;
      else if (code === 22) bold = false;
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) hue = HUES[code % 10] ?? "";
      else if (code === 39) hue = "";
      else if (code === 38 || code === 48) at += codes[at + 1] === 5 ? 2 : codes[at + 1] === 2 ? 4 : 0; // other palettes are not shown
    }
  }
  put(text.length);
  return parts;
}
export const withoutColours = (text: string): string => plain(text.replace(SEQUENCE, ""));
