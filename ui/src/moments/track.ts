// The look-up of a track: every value that the screen ever showed, by event. It computes nothing: the server has projected.

export type Mark = [seq: number, ms: number];

export interface Span {
  run: string;
  step: string;
  scheduled: Mark;
  started: Mark | null;
  ended: Mark | null;
  state: string;
  worker: string;
  role: string;
  attempts: [from: number, to: number | null, ok: boolean | null][];
  waits: [from: number, to: number | null, cause: string][];
  child: string | null;
  /** How many child executions it started. */
  children: number;
  of: string | null;
  /** The step-run that sent its last token. */
  after: string | null;
  items: { total: number; ended: number; failed: number } | null;
}

/** Ordinary step-runs as columns; events and times of starts and ends count from `scheduled`. */
export interface PlainRuns {
  names: string[];
  run: string[];
  step: number[];
  worker: number[];
  after: (string | null)[];
  scheduled: number[];
  scheduled_ms: number[];
  started: number[];
  started_ms: number[];
  ended: number[];
  ended_ms: number[];
}

export interface TrackPart {
  after: number;
  seq: number;
  t0: number;
  head_at: number;
  every: number;
  times: number[];
  runs: Span[];
  /** Of very many step-runs the ordinary ones, which `runs` lacks. */
  plain?: PlainRuns | null;
  dropped: number;
  series: Record<string, [seqs: number[], values: number[]]>;
  thinned: string[];
  states: string[];
}

/** The first place in a sorted list whose value is greater. */
export function upperBound(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if ((sorted[mid] as number) > value) high = mid;
    else low = mid + 1;
  }
  return low;
}

const NONE: never[] = [];

function spansOf(plain: PlainRuns): Span[] {
  return plain.run.map((run, at) => {
    const event = plain.scheduled[at] as number;
    const ms = plain.scheduled_ms[at] as number;
    const started: Mark = [event + (plain.started[at] as number), ms + (plain.started_ms[at] as number)];
    const ended: Mark = [event + (plain.ended[at] as number), ms + (plain.ended_ms[at] as number)];
    return {
      run, started, ended, step: plain.names[plain.step[at] as number] as string, worker: plain.names[plain.worker[at] as number] as string, after: plain.after[at] as string | null,
      scheduled: [event, ms], state: "done", role: "step", attempts: [[started[1], ended[1], true]], waits: NONE, child: null, children: 0, of: null, items: null,
    };
  });
}

const JOIN_BASE = 1_000_000;

export class Track {
  seq = 0;
  t0 = 0;
  headAt = 0;
  every = 1;
  times: number[] = [];
  states: string[] = [""];
  dropped = 0;
  readonly runs = new Map<string, Span>();
  readonly #series = new Map<string, [number[], number[]]>();
  #steps: Map<string, Span[]> | null = null;
  #marks: number[] | null = null;

  /** Take a part; false if it does not continue this track, so that the whole must be asked for. */
  apply(part: TrackPart): boolean {
    if (part.after !== this.seq && part.after !== 0) return part.seq <= this.seq;
    if (part.after === 0) {
      this.#series.clear();
      this.runs.clear();
      this.times = [];
    }
    this.seq = part.seq;
    this.t0 = part.t0;
    this.headAt = part.head_at;
    this.every = part.every;
    this.states = part.states;
    this.dropped = part.dropped;
    for (const time of part.times) this.times.push(time);
    for (const span of part.plain ? [...part.runs, ...spansOf(part.plain)].sort((a, b) => a.scheduled[0] - b.scheduled[0]) : part.runs) this.runs.set(span.run, span);
    for (const [key, [seqs, values]] of Object.entries(part.series)) {
      const known = this.#series.get(key);
      if (!known) this.#series.set(key, [seqs, values]);
      else for (let at = 0; at < seqs.length; at += 1) {
        known[0].push(seqs[at] as number);
        known[1].push(values[at] as number);
      }
    }
    this.#steps = null;
    this.#marks = null;
    return true;
  }

  /** The value of a key after an event; 0 before its first one. */
  at(key: string, seq: number): number {
    const series = this.#series.get(key);
    if (!series) return 0;
    const place = upperBound(series[0], seq);
    return place ? (series[1][place - 1] as number) : 0;
  }

  /** The last event up to a moment at which a key got a value; 0 if there is none. */
  last(key: string, seq: number): number {
    const seqs = this.#series.get(key)?.[0];
    return seqs?.[upperBound(seqs, seq) - 1] ?? 0;
  }

  status = (seq: number): string => this.states[this.at("x", seq)] ?? "";
  step = (name: string, seq: number): string => this.states[this.at(`s:${name}`, seq)] ?? "";
  join(name: string, seq: number): [arrived: number, needed: number] | null {
    const value = this.at(`j:${name}`, seq);
    return value ? [Math.floor(value / JOIN_BASE), value % JOIN_BASE] : null;
  }

  /** Milliseconds after the first event at which an event happened. */
  timeOf(seq: number): number {
    if (seq <= 0) return 0;
    return this.times[Math.min(this.times.length - 1, Math.floor((seq - 1) / this.every))] ?? 0;
  }
  /** The last event at or before a time. */
  seqAt(ms: number): number {
    return Math.min(this.seq, Math.max(1, (upperBound(this.times, ms) - 1) * this.every + 1));
  }

  get bySteps(): Map<string, Span[]> {
    if (!this.#steps) {
      this.#steps = new Map();
      for (const span of this.runs.values()) {
        const list = this.#steps.get(span.step);
        if (list) list.push(span);
        else this.#steps.set(span.step, [span]);
      }
    }
    return this.#steps;
  }
  runsOf(step: string, seq: number): Span[] {
    return (this.bySteps.get(step) ?? []).filter((span) => span.scheduled[0] <= seq);
  }

  /** Grows with every value that changes the graph: to notice one without listing all. */
  get changes(): number {
    let found = 0;
    for (const [key, [seqs]] of this.#series) if (/^[xsnja]/.test(key)) found += seqs.length;
    return found;
  }
  /** Events that change the graph, in order. */
  get marks(): number[] {
    if (!this.#marks) {
      const isMark = new Uint8Array(this.seq + 1);
      for (const [key, [seqs]] of this.#series) if (/^[xsnja]/.test(key)) for (const seq of seqs) isMark[seq] = 1;
      this.#marks = [];
      for (let seq = 1; seq <= this.seq; seq += 1) if (isMark[seq]) this.#marks.push(seq);
    }
    return this.#marks;
  }
  marksOf(step: string): number[] {
    const found = new Set<number>();
    for (const [key, [seqs]] of this.#series) if (key === `s:${step}` || key === `n:${step}` || key.startsWith(`a:${step}#`)) for (const seq of seqs) found.add(seq);
    for (const span of this.bySteps.get(step) ?? []) for (const mark of [span.scheduled, span.started, span.ended]) if (mark) found.add(mark[0]);
    return [...found].filter((seq) => seq > 0).sort((a, b) => a - b);
  }
  /** Events at which a step-run failed, in order. */
  get failures(): { seq: number; span: Span }[] {
    return [...this.runs.values()].filter((span) => span.state === "failed" && span.ended).map((span) => ({ seq: (span.ended as Mark)[0], span })).sort((a, b) => a.seq - b.seq);
  }
}
