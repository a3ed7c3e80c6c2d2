import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { shortZone, zoneName } from "../words/format";
import { Columns, Edge, useChosen } from "./Columns";
import { useKeys } from "./keys";
import css from "./Table.module.css";

export interface Column<T> {
  id: string;
  head: ReactNode;
  /** Its name in the list of columns, where `head` is not a word. */
  name?: string;
  /** It shows times: its head says of which zone. */
  isTime?: boolean;
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
  /** What `c` and `Shift c` copy: the address of a row, and the command that shows it. */
  copies?: (row: T) => { path: string; command: string };
}

const rowHeight = (): number => (document.documentElement.dataset.density === "compact" ? 26 : 32);

const nameOf = <T,>({ id, head, name }: Column<T>): string => name ?? (typeof head === "string" ? head : id);

/** A virtual table: text left, numbers right, a head that stays, keys to move; columns can be hidden and made wider. */
export function Table<T>({ label, rows, columns: all, rowKey, onOpen, marked, onMark, selected, empty, footer, onEnd, copies }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [chosen, choose, reset] = useChosen(label);
  const columns = all.filter((one) => !chosen[one.id]?.hidden);
  const widthOf = (id: string): number => Math.round(scroller.current?.querySelector(`[data-column="${CSS.escape(id)}"]`)?.getBoundingClientRect().width ?? 0);
  const [copied, setCopied] = useState("");
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
  const copy = (what: "path" | "command") => {
    const row = rows[active];
    if (!row || !copies) return;
    const text = what === "path" ? location.origin + copies(row).path : copies(row).command;
    void navigator.clipboard?.writeText(text).then(() => setCopied(text));
  };
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(""), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
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
    ...(copies ? { c: () => copy("path"), "Shift+C": () => copy("command") } : {}),
  });

  const template = { gridTemplateColumns: `${onMark ? "32px " : ""}${columns.map((one) => (chosen[one.id]?.width ? `${chosen[one.id]?.width}px` : one.width)).join(" ")}` };
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
            <span key={column.id} role="columnheader" data-column={column.id} className={`${css.cell} ${css.headcell} ${column.right ? css.right : ""}`}>
              {column.head}
              {column.isTime ? <span className={css.zone} title={`Times in ${zoneName()}`}> {shortZone()}</span> : null}
              <Edge onWidth={(width) => choose(column.id, { width })} />
            </span>
          ))}
          <span role="columnheader" className={css.chooser}>
            <Columns label={label} columns={all.map((one) => ({ id: one.id, name: nameOf(one) }))} chosen={chosen} onChoose={choose} onReset={reset} widthOf={widthOf} />
          </span>
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
      {copied ? <p role="status" className={css.copied}>Copied {copied}</p> : null}
    </div>
  );
}
