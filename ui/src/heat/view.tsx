import { type KeyboardEvent, useLayoutEffect, useEffect, useMemo, useRef, useState } from "react";
import { type Items, useItem } from "../api/executions";
import { Mark } from "../parts/Mark";
import { count, duration, plain } from "../words/format";
import { countsIn, draw, layout, type Layout, type Row, rowOf, rowOfRanges, STATES, worstIn } from "./draw";
import css from "./heat.module.css";

interface Props {
  id: string;
  run: string;
  found: Items;
  failedOnly: boolean;
  /** The item that is selected. */
  item?: number;
  onItem: (index: number) => void;
}

/** Every item of a loop on one canvas. The pointer or the arrow keys move over cells; a click or Enter selects the item. */
export function HeatMap({ id, run, found, failedOnly, item, onItem }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [room, setRoom] = useState({ width: 0, height: 0 });
  const [active, setActive] = useState(-1);
  const [, setTheme] = useState(0);
  const row = useMemo(() => (found.map !== null && found.map !== undefined ? rowOf(found.map, failedOnly) : rowOfRanges(found.ranges ?? [], failedOnly)), [found, failedOnly]);
  const plan = useMemo(() => layout(row.size, room.width, room.height), [row, room]);
  useLayoutEffect(() => {
    const box = frame.current;
    if (!box) return;
    const measure = () => setRoom({ width: box.clientWidth, height: box.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    const theme = () => setTheme((now) => now + 1);
    addEventListener("noetl-theme", theme);
    return () => {
      observer.disconnect();
      removeEventListener("noetl-theme", theme);
    };
  }, []);
  useEffect(() => setActive(-1), [failedOnly, run]);
  const chosen = item === undefined ? -1 : row.place(item);
  useEffect(() => {
    if (canvas.current && room.width > 0) draw(canvas.current, row, plan, active, chosen < 0 ? -1 : Math.floor(chosen / plan.each));
  });

  const at = (event: { clientX: number; clientY: number }): number => {
    const box = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / plan.cell);
    const cell = Math.floor((event.clientY - box.top) / plan.cell) * plan.columns + column;
    return column >= 0 && column < plan.columns && cell >= 0 && cell < plan.cells ? cell : -1;
  };
  const choose = (cell: number) => cell >= 0 && onItem(row.index(worstIn(row, plan, cell)));
  const keys = (event: KeyboardEvent) => {
    const by: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: plan.columns, ArrowUp: -plan.columns, Home: -plan.cells, End: plan.cells };
    if (event.key === "Enter") choose(active);
    else if (event.key in by) setActive(Math.max(0, Math.min(plan.cells - 1, (active < 0 && event.key !== "End" ? -1 + Number(event.key !== "ArrowRight") : active) + (by[event.key] ?? 0))));
    else return;
    event.preventDefault();
  };
  if (row.size === 0) return <p className={css.none}>{failedOnly ? "No item has failed." : "The list is empty."}</p>;
  const words = active >= 0 ? wordsOf(row, plan, active) : `${count(row.size)} ${failedOnly ? "failed items" : "items"}`;
  return (
    <div className={css.heat}>
      <div
        ref={frame}
        className={css.frame}
        role="slider"
        tabIndex={0}
        data-own-arrows
        aria-label="Items"
        aria-valuemin={0}
        aria-valuemax={Math.max(0, plan.cells - 1)}
        aria-valuenow={Math.max(0, active)}
        aria-valuetext={words}
        onKeyDown={keys}
        onPointerMove={(event) => setActive(at(event))}
        onPointerLeave={() => setActive(-1)}
        onClick={(event) => choose(at(event))}
      >
        <canvas ref={canvas} className={css.canvas} data-cells={plan.cells} data-cell={plan.cell} data-columns={plan.columns} aria-hidden />
      </div>
      <Told id={id} run={run} row={row} plan={plan} cell={active >= 0 ? active : chosen < 0 ? -1 : Math.floor(chosen / plan.each)} item={active >= 0 ? undefined : item} />
    </div>
  );
}

function wordsOf(row: Row, plan: Layout, cell: number): string {
  const counts = countsIn(row, plan, cell);
  const total = Object.values(counts).reduce((sum, one) => sum + one, 0);
  if (total === 1) return `item ${row.index(cell * plan.each)}, ${row.at(cell * plan.each)}`;
  const first = row.index(cell * plan.each);
  return `${count(total)} items from ${first}: ${STATES.filter((state) => counts[state]).map((state) => `${count(counts[state] ?? 0)} ${state}`).join(", ")}`;
}

/** What is under the pointer: number, state, then key, duration and error, which the server is asked for. */
function Told({ id, run, row, plan, cell, item }: { id: string; run: string; row: Row; plan: Layout; cell: number; item?: number }) {
  const place = cell >= 0 ? worstIn(row, plan, cell) : -1;
  const index = item ?? (place >= 0 ? row.index(place) : undefined);
  const one = useItem(id, run, row.counts ? undefined : index, place >= 0 ? row.at(place) : "");
  const known = one.data?.index === index ? one.data : undefined;
  return (
    <p className={css.told} role="status">
      {place < 0 || index === undefined ? (
        <span className={css.hint}>Point at a cell, or use the arrow keys; Enter selects the item.</span>
      ) : (
        <>
          <Mark state={known?.state ?? row.at(place)} size={14} />
          <strong>item {index}</strong>
          {known?.key ? <code>{plain(known.key)}</code> : null}
          <span>{known?.state ?? row.at(place)}</span>
          {known?.duration_ms !== null && known?.duration_ms !== undefined ? <span>{duration(known.duration_ms)}</span> : null}
          {known?.error ? <span className={css.error} title={known.error}>{plain(known.error)}</span> : null}
          {plan.each > 1 || row.counts ? <span className={css.hint}>worst of {wordsOf(row, plan, cell)}</span> : null}
        </>
      )}
    </p>
  );
}
