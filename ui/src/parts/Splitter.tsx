import { type KeyboardEvent, type PointerEvent, useState } from "react";
import { settings } from "../words/format";
import css from "./Splitter.module.css";

/** A width that the browser keeps. */
export function useWidth(name: string, first: number): [number, (width: number) => void] {
  const [width, setWidth] = useState(() => Number(settings.get(`width ${name}`)) || first);
  return [
    width,
    (next) => {
      settings.set(`width ${name}`, String(next));
      setWidth(next);
    },
  ];
}

/** The left edge of a panel: drag it, or move it with the arrow keys. */
export function Splitter({ label, value, least, most, onChange }: { label: string; value: number; least: number; most: number; onChange: (width: number) => void }) {
  const within = (width: number) => Math.round(Math.max(least, Math.min(most, innerWidth * 0.75, width)));
  const drag = (event: PointerEvent<HTMLDivElement>) => {
    event.preventDefault();
    const edge = event.currentTarget;
    edge.setPointerCapture(event.pointerId);
    const from = event.clientX;
    const move = (moved: globalThis.PointerEvent) => onChange(within(value + from - moved.clientX));
    edge.addEventListener("pointermove", move);
    edge.addEventListener("lostpointercapture", () => edge.removeEventListener("pointermove", move), { once: true });
  };
  const keys = (event: KeyboardEvent) => {
    const by = event.key === "ArrowLeft" ? 24 : event.key === "ArrowRight" ? -24 : 0;
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    onChange(within(value + by));
  };
  return <div className={css.edge} role="separator" aria-orientation="vertical" aria-label={label} aria-valuenow={value} aria-valuemin={least} aria-valuemax={most} tabIndex={0} data-own-arrows onPointerDown={drag} onKeyDown={keys} />;
}
