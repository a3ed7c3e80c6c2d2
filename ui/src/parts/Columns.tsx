import { Popover } from "@base-ui/react/popover";
import { type PointerEvent, useState } from "react";
import { settings } from "../words/format";
import css from "./Columns.module.css";
import { Button } from "./controls";

/** What a person chose for the columns of a table, by their ids. */
export type Chosen = Record<string, { hidden?: boolean; width?: number }>;
const LEAST = 48;
const STEP = 24;

function stored(label: string): Chosen {
  try {
    return JSON.parse(settings.get(`columns ${label}`) ?? "{}") as Chosen;
  } catch {
    return {};
  }
}

/** Widths and hidden columns of a table; the browser keeps them. */
export function useChosen(label: string): [Chosen, (id: string, next: Chosen[string]) => void, () => void] {
  const [chosen, setChosen] = useState(() => stored(label));
  const keep = (next: Chosen) => {
    settings.set(`columns ${label}`, JSON.stringify(next));
    setChosen(next);
  };
  return [chosen, (id, next) => keep({ ...chosen, [id]: { ...chosen[id], ...next } }), () => keep({})];
}

/** The edge of a column's head; it is dragged, and a double click takes the width back. */
export function Edge({ onWidth }: { onWidth: (width: number | undefined) => void }) {
  const drag = (event: PointerEvent<HTMLSpanElement>) => {
    const head = event.currentTarget.parentElement;
    if (!head) return;
    event.preventDefault();
    event.currentTarget.setPointerCapture(event.pointerId);
    const from = event.clientX;
    const width = head.getBoundingClientRect().width;
    const edge = event.currentTarget;
    const move = (moved: globalThis.PointerEvent) => onWidth(Math.max(LEAST, Math.round(width + moved.clientX - from)));
    const end = () => {
      edge.removeEventListener("pointermove", move);
      edge.removeEventListener("pointerup", end);
      edge.removeEventListener("pointercancel", end);
    };
    edge.addEventListener("pointermove", move);
    edge.addEventListener("pointerup", end);
    edge.addEventListener("pointercancel", end);
  };
  return <span className={css.edge} data-edge aria-hidden onPointerDown={drag} onDoubleClick={() => onWidth(undefined)} />;
}

interface Props {
  label: string;
  columns: { id: string; name: string }[];
  chosen: Chosen;
  onChoose: (id: string, next: Chosen[string]) => void;
  onReset: () => void;
  /** How wide a column is now. */
  widthOf: (id: string) => number;
}

/** Which columns are shown, and how wide: what the edges do, by keyboard. */
export function Columns({ label, columns, chosen, onChoose, onReset, widthOf }: Props) {
  const shown = columns.filter((one) => !chosen[one.id]?.hidden);
  return (
    <Popover.Root>
      <Popover.Trigger className={css.open} aria-label={`Columns of ${label}`} title="Columns">
        <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden className={css.sign}>
          <path d="M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10" />
        </svg>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Positioner side="bottom" align="end" sideOffset={4} className={css.place}>
          <Popover.Popup className={css.menu}>
            <Popover.Title className={css.title}>Columns</Popover.Title>
            {columns.map(({ id, name }) => {
              const isShown = !chosen[id]?.hidden;
              return (
                <div key={id} className={css.row}>
                  <label className={css.name}>
                    <input type="checkbox" checked={isShown} disabled={isShown && shown.length === 1} onChange={() => onChoose(id, { hidden: isShown })} /> {name}
                  </label>
                  <Button kind="quiet" disabled={!isShown} aria-label={`${name} narrower`} onClick={() => onChoose(id, { width: Math.max(LEAST, widthOf(id) - STEP) })}>−</Button>
                  <Button kind="quiet" disabled={!isShown} aria-label={`${name} wider`} onClick={() => onChoose(id, { width: widthOf(id) + STEP })}>+</Button>
                </div>
              );
            })}
            <Button onClick={onReset} disabled={Object.keys(chosen).length === 0}>As it was</Button>
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}
