// Rare actions behind one button. Its items stay in the page while it is closed, so that the palette finds them.
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { Button } from "./controls";
import css from "./Menu.module.css";

export interface Item {
  label: string;
  does: () => void;
  /** Why it cannot be chosen now; it keeps its place, so that the keyboard reaches the reason. */
  why?: string;
  /** The key that does the same on this page. */
  shortcut?: string;
  isDanger?: boolean;
}

/** A button that opens a list of actions: arrows, Home, End and first letters move, Escape and Tab close. */
export function Menu({ label, items }: { label: string; items: readonly Item[] }) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const whole = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const first = useRef(0); // where the focus begins
  const choices = () => [...(list.current?.children ?? [])] as HTMLElement[];
  const open = (at: number) => {
    first.current = at;
    setOpen(true);
  };
  const close = () => {
    setOpen(false);
    whole.current?.querySelector("button")?.focus();
  };
  useEffect(() => {
    if (!isOpen) return;
    choices().at(first.current)?.focus();
    const leave = (event: Event) => {
      if (!whole.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", leave);
    return () => document.removeEventListener("pointerdown", leave);
  }, [isOpen]);
  const choose = (item: Item) => {
    if (item.why) return;
    close(); // before a dialog opens, which gives the focus back to this button
    item.does();
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Tab") return isOpen ? setOpen(false) : undefined;
    const all = choices();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const keys: Record<string, () => void> = isOpen
      ? {
          ArrowDown: () => all[(at + 1) % all.length]?.focus(),
          ArrowUp: () => all.at(at <= 0 ? -1 : at - 1)?.focus(),
          Home: () => all[0]?.focus(),
          End: () => all.at(-1)?.focus(),
          Escape: close,
        }
      : { ArrowDown: () => open(0), ArrowUp: () => open(-1) };
    const letter = event.key.length === 1 && event.key !== " " ? event.key.toLowerCase() : "";
    const does = keys[event.key] ?? (isOpen && letter ? () => [...all.slice(at + 1), ...all].find((one) => one.textContent?.toLowerCase().startsWith(letter))?.focus() : undefined);
    if (!does) return;
    event.preventDefault(); // the page has other meanings for these keys
    does();
  };
  return (
    <div className={css.whole} ref={whole} onKeyDown={pressed} data-own-arrows>
      <Button kind="quiet" aria-haspopup="menu" aria-expanded={isOpen} aria-controls={id} aria-label={label} title={label} onClick={() => (isOpen ? close() : open(0))}>⋯</Button>
      <div className={css.list} id={id} ref={list} role="menu" aria-label={label} hidden={!isOpen}>
        {items.map((item) => (
          <button key={item.label} type="button" role="menuitem" tabIndex={-1} className={`${css.item} ${item.isDanger ? css.danger : ""}`} aria-disabled={item.why ? true : undefined} title={item.why} onClick={() => choose(item)}>
            <span>{item.label}</span>
            {item.why ? <span className={css.hint}>{item.why}</span> : item.shortcut ? <kbd className={css.hint}>{item.shortcut}</kbd> : null}
          </button>
        ))}
      </div>
    </div>
  );
}
