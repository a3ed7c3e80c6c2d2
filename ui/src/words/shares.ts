// Figures of several executions: percentiles of durations, share of good ends.
import { hasEnded } from "./states";

export interface Row {
  execution_id: string;
  status: string;
  started_at?: number;
  ended_at?: number | null;
}
export const lasted = (row: Row): number => (row.ended_at ?? row.started_at ?? 0) - (row.started_at ?? 0);

export function percentile(values: readonly number[], share: number): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? null;
}

export interface Figures {
  ended: number;
  p50: number | null;
  p95: number | null;
  good: number | null;
}

export function figuresOf(rows: readonly Row[]): Figures {
  const ended = rows.filter((row) => hasEnded(row.status));
  const times = ended.map(lasted);
  const judged = ended.filter((row) => row.status !== "cancelled");
  const good = judged.filter((row) => row.status === "completed").length;
  return { ended: ended.length, p50: percentile(times, 0.5), p95: percentile(times, 0.95), good: judged.length ? good / judged.length : null };
}
