import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { Grid } from "../api/statistics";
import { paintMark } from "../parts/paint";
import { ago, plain, shortId } from "../words/format";
import { stateOf } from "../words/states";
import css from "./grid.module.css";

const CELL = 18;
const MOST_STEPS = 200;

/** The last executions by step: one column each, oldest first; a cell is the state of the step's last run. */
export function StepGrid({ grid, onOpen }: { grid: Grid; onOpen: (execution: string, step: string | undefined) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<[number, number]>([-1, -1]);
  const [, setTheme] = useState(0);
  const runs = [...grid.rows].reverse();
  const steps = grid.steps.slice(0, MOST_STEPS);
  const columns = runs.length;
  const lines = steps.length + 1;
  const stateAt = (column: number, line: number): string => (line === 0 ? (runs[column]?.status ?? "") : (runs[column]?.cells[line - 1] ?? ""));
  useEffect(() => {
    const theme = () => setTheme((old) => old + 1);
    addEventListener("noetl-theme", theme);
    return () => removeEventListener("noetl-theme", theme);
  }, []);
  useEffect(() => {
    const found = canvas.current;
    const pen = found?.getContext("2d");
    if (!found || !pen) return;
    const ratio = Math.max(1, Math.round(devicePixelRatio));
    found.width = columns * CELL * ratio;
    found.height = lines * CELL * ratio;
    found.style.width = `${columns * CELL}px`;
    found.style.height = `${lines * CELL}px`;
    pen.scale(ratio, ratio);
    const style = getComputedStyle(found);
    const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
    if (at[0] >= 0) {
      pen.fillStyle = colour("selected");
      pen.fillRect(at[0] * CELL, 0, CELL, lines * CELL);
      pen.fillRect(0, at[1] * CELL, columns * CELL, CELL);
    }
    for (let column = 0; column < columns; column += 1)
      for (let line = 0; line < lines; line += 1) {
        const state = stateAt(column, line);
        pen.globalAlpha = state === "" ? 0.35 : 1;
        paintMark(pen, state, [column * CELL + 2, line * CELL + 2], 14 / 16, colour);
      }
    pen.globalAlpha = 1;
  });
  const under = (event: { clientX: number; clientY: number }): [number, number] => {
    const box = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / CELL);
    const line = Math.floor((event.clientY - box.top) / CELL);
    return column >= 0 && column < columns && line >= 0 && line < lines ? [column, line] : [-1, -1];
  };
  const open = ([column, line]: [number, number]) => {
    const row = runs[column];
    if (row) onOpen(row.execution_id, line > 0 ? steps[line - 1] : undefined);
  };
  const keys = (event: KeyboardEvent) => {
    const by: Record<string, [number, number]> = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1], Home: [-columns, 0], End: [columns, 0] };
    const step = by[event.key];
    if (event.key === "Enter") open(at);
    else if (step) setAt(([x, y]) => (x < 0 ? [columns - 1, 0] : [Math.max(0, Math.min(columns - 1, x + step[0])), Math.max(0, Math.min(lines - 1, y + step[1]))]));
    else return;
    event.preventDefault();
  };
  if (columns === 0) return null;
  const row = runs[at[0]];
  const words = row ? `${shortId(row.execution_id)}, started ${ago(row.started_at)}: ${at[1] === 0 ? "" : `${plain(steps[at[1] - 1] ?? "")} `}${stateOf(stateAt(at[0], at[1])).word}` : `the last ${columns} executions`;
  return (
    <div className={css.grid}>
      <div className={css.names} aria-hidden>
        <span className={css.name}>execution</span>
        {steps.map((step) => <span key={step} className={css.name} title={step}>{plain(step)}</span>)}
      </div>
      <div className={css.cells}>
        <div
          className={css.frame}
          role="slider"
          tabIndex={0}
          data-own-arrows
          aria-label="Executions by step"
          aria-valuemin={0}
          aria-valuemax={columns * lines - 1}
          aria-valuenow={at[0] < 0 ? 0 : at[1] * columns + at[0]}
          aria-valuetext={words}
          onKeyDown={keys}
          onPointerMove={(event) => setAt(under(event))}
          onPointerLeave={() => setAt([-1, -1])}
          onClick={(event) => open(under(event))}
        >
          <canvas ref={canvas} className={css.canvas} data-columns={columns} data-lines={lines} aria-hidden />
        </div>
        <p className={css.told} role="status">{row ? words : "Point at a cell, or use the arrow keys; Enter opens the execution."}{grid.steps.length > MOST_STEPS ? ` First ${MOST_STEPS} of ${grid.steps.length} steps.` : ""}</p>
      </div>
    </div>
  );
}
