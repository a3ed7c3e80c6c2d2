import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useKeys } from "./keys";
import css from "./Table.module.css";

export interface Column<T> {
  id: string;
  head: ReactNode;
  /** A grid track, such as `120px` or `minmax(160px, 2fr)`. */
  width: string;
  cell: (row: T) => ReactNode;
  right?: boolean;
}

interface Props<T> {
  label: string;
  rows: readonly T[];
  columns: Column<T>[];
  rowKey: (row: T) => string;
  onOpen?: (row: T) => void;
  marked?: ReadonlySet<string>;
  onMark?: (keys: ReadonlySet<string>) => void;
  selected?: string;
  empty?: ReactNode;
  footer?: ReactNode;
  onEnd?: () => void;
}

const rowHeight = (): number => (document.documentElement.dataset.density === "compact" ? 26 : 32);

/** A virtual table: text left, numbers right, a head that stays, keys to move. */
export function Table<T>({ label, rows, columns, rowKey, onOpen, marked, onMark, selected, empty, footer, onEnd }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(-1);
  const height = rowHeight();
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => height, overscan: 12 });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (onEnd && rows.length > 0 && last >= rows.length - 10) onEnd();
  }, [last, rows.length, onEnd]);

  const move = (step: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, active + step));
    setActive(next);
    virtual.scrollToIndex(next);
  };
  const mark = (at: number, isRange: boolean) => {
    const row = rows[at];
    if (!row || !onMark) return;
    const keys = new Set(marked);
    const key = rowKey(row);
    if (isRange) {
      let from = at;
      while (from > 0 && !keys.has(rowKey(rows[from] as T))) from -= 1;
      for (let one = from; one <= at; one += 1) keys.add(rowKey(rows[one] as T));
    } else if (keys.has(key)) keys.delete(key);
    else keys.add(key);
    onMark(keys);
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => {
      const row = rows[active];
      if (row) onOpen?.(row);
    },
    x: () => mark(active, false),
    "Shift+X": () => mark(active, true),
  });

  const template = { gridTemplateColumns: `${onMark ? "32px " : ""}${columns.map((one) => one.width).join(" ")}` };
  return (
    <div className={css.scroller} ref={scroller} role="table" aria-label={label} aria-rowcount={rows.length + 1} tabIndex={0}>
      <div role="rowgroup" className={css.headgroup}>
        <div role="row" className={css.head} style={template}>
          {onMark ? (
            <span role="columnheader" className={css.cell}>
              <input
                type="checkbox"
                aria-label="Mark all that are loaded"
                checked={rows.length > 0 && marked?.size === rows.length}
                onChange={(event) => onMark(event.target.checked ? new Set(rows.map(rowKey)) : new Set())}
              />
            </span>
          ) : null}
          {columns.map((column) => (
            <span key={column.id} role="columnheader" className={`${css.cell} ${column.right ? css.right : ""}`}>
              {column.head}
            </span>
          ))}
        </div>
      </div>
      {rows.length === 0 ? (
        <div role="rowgroup">
          <div role="row">
            <div role="cell">{empty}</div>
          </div>
        </div>
      ) : null}
      <div role="rowgroup" className={css.body} style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const row = rows[item.index] as T;
          const key = rowKey(row);
          return (
            // biome-ignore lint: keys are handled for the whole table
            <div
              key={key}
              role="row"
              aria-rowindex={item.index + 2}
              className={`${css.row} ${item.index === active ? css.active : ""} ${key === selected ? css.selected : ""}`}
              style={{ ...template, height: item.size, transform: `translateY(${item.start}px)` }}
              onClick={(event) => {
                if ((event.target as HTMLElement).closest("a, button, input")) return;
                if (getSelection()?.toString()) return;
                setActive(item.index);
                onOpen?.(row);
              }}
              data-open={onOpen ? "" : undefined}
            >
              {onMark ? (
                <span role="cell" className={css.cell}>
                  <input type="checkbox" aria-label={`Mark ${key}`} checked={marked?.has(key) ?? false} onChange={(event) => mark(item.index, (event.nativeEvent as MouseEvent).shiftKey)} />
                </span>
              ) : null}
              {columns.map((column) => (
                <span key={column.id} role="cell" className={`${css.cell} ${column.right ? css.right : ""}`}>
                  {column.cell(row)}
                </span>
              ))}
            </div>
          );
        })}
      </div>
      {footer}
    </div>
  );
}
