import { type PointerEvent, useState } from "react";
import { duration } from "../words/format";
import type { Range, Scale } from "./scale";
import css from "./timeline.module.css";

interface Props {
  scale: Scale;
  /** Told the element whose width is that of the scale. */
  lane: (element: HTMLElement | null) => void;
  onZoom: (range: Range) => void;
  onWhole: () => void;
  onUnfold: (gap: number) => void;
}
const APART = 84;
const LEAST_DRAG = 5;
const LABEL = 56; // a narrower fold has only its sign

/** The time axis: a drag over it zooms, a double click shows the whole time, a click on a fold opens it. */
export function Axis({ scale, lane, onZoom, onWhole, onUnfold }: Props) {
  const [drag, setDrag] = useState<Range | null>(null);
  const under = (pointer: PointerEvent<HTMLElement>) => Math.max(0, Math.min(scale.width, pointer.clientX - pointer.currentTarget.getBoundingClientRect().left));
  const end = (pointer: PointerEvent<HTMLElement>) => {
    if (drag && Math.abs(under(pointer) - drag[0]) >= LEAST_DRAG) onZoom([scale.time(drag[0]), scale.time(under(pointer))]);
    setDrag(null);
  };
  return (
    <div className={css.axis}>
      <span />
      <div
        ref={lane}
        className={css.ticks}
        data-axis
        title="Drag to zoom; double click for the whole time"
        onPointerDown={(pressed) => {
          if (pressed.button !== 0 || (pressed.target as HTMLElement).closest("button")) return;
          pressed.currentTarget.setPointerCapture(pressed.pointerId);
          setDrag([under(pressed), under(pressed)]);
        }}
        onPointerMove={(moved) => drag && setDrag([drag[0], under(moved)])}
        onPointerUp={end}
        onPointerCancel={() => setDrag(null)}
        onDoubleClick={onWhole}
      >
        {scale.ticks(APART).map((tick) => (
          <span key={tick.ms} className={css.tick} style={{ left: tick.x }} aria-hidden>{tick.text}</span>
        ))}
        <span className={css.lasttick} aria-hidden>{duration(scale.range[1])}</span>
        {scale.folds.map((one) => (
          <button key={one.fold.from} type="button" data-fold className={css.fold} style={{ left: one.x, width: one.width }} title={`Nothing was queued or ran for ${duration(one.to - one.from)}; a click unfolds it`} aria-label={`Unfold ${duration(one.to - one.from)}`} onClick={() => onUnfold(one.fold.from)}>
            <svg width="9" height="12" viewBox="0 0 9 12" stroke="currentColor" aria-hidden>
              <path d="M1 11 4 1M5 11 8 1" />
            </svg>
            {one.width < LABEL ? null : duration(one.to - one.from)}
          </button>
        ))}
        {drag ? <span className={css.drag} style={{ left: Math.min(...drag), width: Math.abs(drag[1] - drag[0]) }} /> : null}
      </div>
    </div>
  );
}
