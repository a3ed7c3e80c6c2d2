import { useLayoutEffect, useRef } from "react";
import { settings } from "../words/format";

type Keys = Record<string, (event: KeyboardEvent) => void>;

/** Where a key was pressed; inside a shadow root, events that reach the window name only its host. */
const placeOf = (event: KeyboardEvent): EventTarget | null => event.composedPath()[0] ?? event.target;
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && (target as HTMLInputElement).type !== "checkbox";

/** Open the palette from anywhere; `openActions` shows only what the page can do. */
export const openPalette = (): boolean => dispatchEvent(new CustomEvent("noetl-palette"));
export const openActions = (): boolean => dispatchEvent(new CustomEvent("noetl-palette", { detail: "here" }));

let pressed = ""; // the key press that is handled now, with the `g` before it
let prefix = "";
let prefixAt = 0;

/** Name a key press as the table of shortcuts does: `j`, `Shift+X`, `Mod+k`, `g h`. */
function nameOf(event: KeyboardEvent): string {
  const mod = event.metaKey || event.ctrlKey ? "Mod+" : "";
  const shift = event.shiftKey && (event.key.length > 1 || /[a-z]/i.test(event.key)) ? "Shift+" : "";
  return `${mod}${shift}${shift && event.key.length === 1 ? event.key.toUpperCase() : event.key}`;
}

/** Listen for keys while the component is shown; off inside inputs, under a dialog, and where single letters are switched off. */
export function useKeys(keys: Keys, { inDialogs = false }: { inDialogs?: boolean } = {}): void {
  const latest = useRef(keys);
  latest.current = keys;
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey) return;
      const name = nameOf(event);
      const run = latest.current[pressed]; // after `g`, a letter has no other meaning
      if (!run) return;
      const isSingle = !name.startsWith("Mod+") && event.key.length === 1;
      if (!name.startsWith("Mod+") && isTyping(placeOf(event))) return;
      if (isSingle && settings.get("letters") === "off") return;
      if (!inDialogs && document.querySelector("[role=dialog]")) return;
      if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.closest("a, button")) return;
      if (event.key.startsWith("Arrow") && event.target instanceof HTMLElement && event.target.closest("[role=tablist],[data-own-arrows]")) return;
      event.preventDefault();
      run(event);
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, [inDialogs]);
}

window.addEventListener(
  "keydown",
  (event) => {
    const name = nameOf(event);
    pressed = prefix && event.timeStamp - prefixAt < 1_200 ? `${prefix} ${name}` : name;
    if (name === "g" && !isTyping(placeOf(event))) {
      prefix = "g";
      prefixAt = performance.now(); // not when it was pressed: a busy page handles it later
    } else if (event.key.length === 1) prefix = "";
  },
  { capture: true }, // before every listener above
);
