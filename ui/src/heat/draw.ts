// The items of a loop as cells of one canvas: how large, which state, which colour. Nothing here asks or remembers.
import { stateOf } from "../words/states";

/** The marks of `GET …/items?as=map`, by what they stand for. */
export const MARKS: Record<string, string> = { ".": "not issued", q: "queued", r: "running", w: "waiting", d: "done", f: "failed", k: "skipped", p: "repaired" };
export const STATES = Object.values(MARKS);
const PAINT: Record<string, string> = { "not issued": "line", queued: "border", running: "blue", waiting: "amber", done: "green", failed: "red", skipped: "grey", repaired: "green" };
/** Strokes on a square of 8 × 8, in the colour of the ground. */
const SIGNS: Record<string, string> = { failed: "M2 2l4 4M6 2l-4 4", running: "M3 2v4l3-2z", waiting: "M4 1.6L6.4 4L4 6.4L1.6 4z", skipped: "M2 4h4", repaired: "M1.8 4.2l1.6 1.6l2.8-3.2" };
const LEAST = 3;
const MOST = 22;
const SIGNED = 10;

/** States in the order of their items; several items may share a cell. */
export interface Row {
  size: number;
  /** The state of the item at a place. */
  at: (place: number) => string;
  /** The number of the item at a place. */
  index: (place: number) => number;
  /** The place of an item, or -1. */
  place: (index: number) => number;
  /** How many items a place stands for, by their state. */
  counts?: (place: number) => Record<string, number>;
}

export function rowOf(map: string, failedOnly: boolean): Row {
  const at = (index: number): string => MARKS[map[index] ?? "."] ?? "not issued";
  if (!failedOnly) return { size: map.length, at, index: (place) => place, place: (index) => (index < map.length ? index : -1) };
  const chosen: number[] = [];
  for (let index = map.indexOf("f"); index >= 0; index = map.indexOf("f", index + 1)) chosen.push(index);
  return { size: chosen.length, at: () => "failed", index: (place) => chosen[place] ?? 0, place: (index) => chosen.indexOf(index) };
}

interface Range {
  start: number;
  count: number;
  states: Record<string, number>;
}
/** Above a million items the server counts ranges; each is one place. */
export function rowOfRanges(ranges: readonly Range[], failedOnly: boolean): Row {
  const shown = failedOnly ? ranges.filter((one) => one.states.failed) : ranges;
  const worst = (one: Range | undefined): string => STATES.filter((state) => one?.states[state]).sort((a, b) => order(b) - order(a))[0] ?? "not issued";
  return {
    size: shown.length,
    at: (place) => (failedOnly ? "failed" : worst(shown[place])),
    index: (place) => shown[place]?.start ?? 0,
    place: (index) => shown.findIndex((one) => index >= one.start && index < one.start + one.count),
    counts: (place) => shown[place]?.states ?? {},
  };
}

const order = (state: string): number => stateOf(state).order;

export interface Layout {
  /** Edge of a cell in pixels of CSS. */
  cell: number;
  columns: number;
  cells: number;
  /** Places in one cell. */
  each: number;
}

/** The largest cells with which all items fit; if none do, the smallest, with several items in each. */
export function layout(size: number, width: number, height: number): Layout {
  for (let cell = MOST; cell > LEAST; cell -= 1) {
    const columns = Math.max(1, Math.floor(width / cell));
    if (columns * Math.floor(height / cell) >= size) return { cell, columns, cells: size, each: 1 };
  }
  const columns = Math.max(1, Math.floor(width / LEAST));
  const room = columns * Math.max(1, Math.floor(height / LEAST));
  const each = Math.max(1, Math.ceil(size / room));
  return { cell: LEAST, columns, cells: Math.ceil(size / each), each };
}

/** The place in a cell whose state is the worst. */
export function worstIn(row: Row, plan: Layout, cell: number): number {
  const first = cell * plan.each;
  let found = first;
  for (let place = first + 1; place < Math.min(row.size, first + plan.each); place += 1) if (order(row.at(place)) > order(row.at(found))) found = place;
  return found;
}

/** How many items of each state a cell holds. */
export function countsIn(row: Row, plan: Layout, cell: number): Record<string, number> {
  const found: Record<string, number> = {};
  for (let place = cell * plan.each; place < Math.min(row.size, (cell + 1) * plan.each); place += 1) {
    for (const [state, count] of Object.entries(row.counts?.(place) ?? { [row.at(place)]: 1 })) found[state] = (found[state] ?? 0) + count;
  }
  return found;
}

function packed(colour: string, pen: CanvasRenderingContext2D): number {
  pen.fillStyle = colour;
  const hex = String(pen.fillStyle); // always #rrggbb
  return (0xff000000 | (Number.parseInt(hex.slice(5, 7), 16) << 16) | (Number.parseInt(hex.slice(3, 5), 16) << 8) | Number.parseInt(hex.slice(1, 3), 16)) >>> 0;
}

/** Paint all cells at once; a failed one fills its square, others leave an edge, so that the shape tells too. */
export function draw(canvas: HTMLCanvasElement, row: Row, plan: Layout, active: number, chosen: number): void {
  const pen = canvas.getContext("2d");
  if (!pen || plan.cells === 0) return;
  const ratio = Math.max(1, Math.round(devicePixelRatio));
  const lines = Math.ceil(plan.cells / plan.columns);
  canvas.width = plan.columns * plan.cell * ratio;
  canvas.height = lines * plan.cell * ratio;
  canvas.style.width = `${plan.columns * plan.cell}px`;
  canvas.style.height = `${lines * plan.cell}px`;
  const style = getComputedStyle(canvas);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const inks = new Map(STATES.map((state) => [state, packed(colour(PAINT[state] ?? "line"), pen)]));
  const image = pen.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const edge = plan.cell * ratio;
  const signs = new Map<string, number[]>();
  for (let cell = 0; cell < plan.cells; cell += 1) {
    const state = plan.each === 1 ? row.at(cell) : row.at(worstIn(row, plan, cell));
    const ink = inks.get(state) ?? 0;
    const inner = state === "failed" ? edge : edge - ratio;
    const from = Math.floor(cell / plan.columns) * edge * canvas.width + (cell % plan.columns) * edge;
    for (let y = 0; y < inner; y += 1) pixels.fill(ink, from + y * canvas.width, from + y * canvas.width + inner);
    if (plan.cell >= SIGNED && SIGNS[state]) (signs.get(state) ?? signs.set(state, []).get(state))?.push(cell);
  }
  pen.putImageData(image, 0, 0);
  pen.scale(ratio, ratio);
  const scale = (plan.cell - 1) / 8;
  pen.strokeStyle = colour("bg");
  for (const [state, cells] of signs) {
    const path = new Path2D(SIGNS[state]);
    for (const cell of cells) {
      pen.save();
      pen.translate((cell % plan.columns) * plan.cell, Math.floor(cell / plan.columns) * plan.cell);
      pen.scale(scale, scale);
      pen.stroke(path);
      pen.restore();
    }
  }
  for (const [cell, name] of [[chosen, "accent"], [active, "text"]] as const) {
    if (cell < 0 || cell >= plan.cells) continue;
    pen.strokeStyle = colour(name);
    pen.lineWidth = 2;
    pen.strokeRect((cell % plan.columns) * plan.cell + 1, Math.floor(cell / plan.columns) * plan.cell + 1, Math.max(1, plan.cell - 2), Math.max(1, plan.cell - 2));
  }
}
