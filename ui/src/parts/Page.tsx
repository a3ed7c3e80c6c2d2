import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Button } from "./controls";
import { useKeys } from "./keys";
import css from "./Page.module.css";

/** A screen: its title with a note, its actions, then what it shows. */
export function Page({ title, note, actions, children, scrolls = false }: { title: ReactNode; note?: ReactNode; actions?: ReactNode; children: ReactNode; scrolls?: boolean }) {
  return (
    <div className={css.page}>
      <header className={css.head}>
        <h1 className={css.title}>{title}</h1>
        {note ? <span className={css.note}>{note}</span> : null}
        <span className={css.space} />
        {actions ? <div className={css.actions} data-actions>{actions}</div> : null}
      </header>
      <div className={`${css.body} ${scrolls ? css.scrolls : ""}`}>{children}</div>
    </div>
  );
}

/** A list with the panel of what is chosen in it. */
export function Split({ children, panel }: { children: ReactNode; panel?: ReactNode }) {
  return (
    <div className={css.split}>
      <div className={css.list}>{children}</div>
      {panel}
    </div>
  );
}

export function Panel({ title, label, onClose, actions, children }: { title: ReactNode; label: string; onClose?: () => void; actions?: ReactNode; children: ReactNode }) {
  useKeys({ Escape: () => onClose?.() });
  return (
    <aside className={css.panel} aria-label={label}>
      <header className={css.panelhead}>
        <h2 className={css.paneltitle}>{title}</h2>
        {onClose ? (
          <Button kind="quiet" onClick={onClose} aria-label="Close the panel" title="Close (Esc)">
            ✕
          </Button>
        ) : null}
      </header>
      {actions ? <div className={css.actions} data-actions>{actions}</div> : null}
      {children}
    </aside>
  );
}

export function Card({ title, note, actions, children, className = "" }: { title?: ReactNode; note?: ReactNode; actions?: ReactNode; children: ReactNode; className?: string }) {
  return (
    <section className={`${css.card} ${className}`}>
      {title ? (
        <header className={css.cardhead}>
          <h2>{title}</h2>
          {note ? <span className={css.note}>{note}</span> : null}
          <span className={css.space} />
          {actions}
        </header>
      ) : null}
      {children}
    </section>
  );
}

/** A plain table inside a card: a few rows, no scrolling of its own. */
export function Lines({ label, heads, rows, empty, wraps = false }: { label: string; heads: ReactNode[]; rows: { key: string; cells: ReactNode[] }[]; empty?: ReactNode; wraps?: boolean }) {
  if (rows.length === 0) return <div className={css.none}>{empty}</div>;
  return (
    <div className={css.wide} tabIndex={0} role="group" aria-label={label}>
      <table className={`${css.lines} ${wraps ? css.wraps : ""}`} aria-label={label}>
        <thead>
          <tr>
            {heads.map((one, at) => (
              <th key={at} scope="col">
                {one}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              {row.cells.map((cell, at) => (
                <td key={at}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Escape leaves a filter as it is; a browser would empty it. */
function leave(event: KeyboardEvent<HTMLInputElement>): void {
  if (event.key !== "Escape") return;
  event.preventDefault();
  event.currentTarget.blur();
}

/** The filter of a list; it changes the URL while one types, after a short rest. */
export function Filter({ text, onChange, label, hint }: { text: string; onChange: (text: string) => void; label: string; hint?: string }) {
  const [draft, setDraft] = useState(text);
  const sent = useRef(text);
  useEffect(() => {
    if (text !== sent.current) setDraft(text);
    sent.current = text;
  }, [text]);
  useEffect(() => {
    if (draft === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = draft;
      onChange(draft);
    }, 200);
    return () => clearTimeout(timer);
  }, [draft, onChange]);
  return <input data-filter type="search" className={css.filter} aria-label={label} placeholder={hint ?? label} value={draft} onChange={(event) => setDraft(event.target.value)} onKeyDown={leave} />;
}
