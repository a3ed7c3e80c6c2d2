import { Link } from "@tanstack/react-router";
import { duration, exact } from "../words/format";
import { lasted, type Row } from "../words/shares";
import { stateOf } from "../words/states";
import css from "./Bars.module.css";
import { Mark } from "./Mark";


/** The last executions, oldest first: height is the duration, the foot is the state. */
export function Bars({ rows, most = 20 }: { rows: readonly Row[]; most?: number }) {
  const shown = rows.slice(0, most).reverse();
  const times = shown.map(lasted);
  const longest = Math.max(1, ...times);
  return (
    <span className={css.bars} role="list" aria-label={`Last ${shown.length} executions`}>
      {shown.map((row, at) => {
        const state = stateOf(row.status);
        const height = 3 + Math.round(15 * (Math.log1p(times[at] ?? 0) / Math.log1p(longest)));
        const words = `${state.word}, ${duration(lasted(row))}, ${exact(row.started_at ?? 0)}`;
        return (
          <span key={row.execution_id} role="listitem" className={css.slot}>
            <svg width="6" height="20" role="img" aria-label={words} className={`${css.bar} ${css[state.hue]}`}>
              <title>{words}</title>
              <rect x="0.5" y={20 - height} width="5" height={height} rx="1" />
              {state.mark === "cross" || state.mark === "half" ? <path d={state.mark === "cross" ? "M1 13l4 4M5 13l-4 4" : "M1 15h4"} /> : null}
            </svg>
          </span>
        );
      })}
    </span>
  );
}

/** The same as marks alone, each a link. */
export function Marks({ rows, most = 20 }: { rows: readonly Row[]; most?: number }) {
  return (
    <span className={css.marks}>
      {rows
        .slice(0, most)
        .reverse()
        .map((row) => (
          <Link key={row.execution_id} to="/executions/$id" params={{ id: row.execution_id }} className={css.mark} title={`${stateOf(row.status).word}, ${duration(lasted(row))}, ${exact(row.started_at ?? 0)}`}>
            <Mark state={row.status} />
          </Link>
        ))}
    </span>
  );
}
