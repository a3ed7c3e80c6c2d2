// The tab of the browser as a board: the title and the icon carry the mark of what the page shows.
import { useEffect } from "react";
import { MARKS, stateOf } from "../words/states";

const SIGNS: Record<string, string> = { check: "✓", cross: "✕", half: "◐", hourglass: "◈", play: "▶", slash: "⊘", bars: "▣", dots: "◔" };

function iconOf(state: string): string {
  const { mark, hue } = stateOf(state);
  const style = getComputedStyle(document.documentElement);
  const [ink, ground] = [style.getPropertyValue(`--${hue}`).trim(), style.getPropertyValue("--bg").trim()];
  const paths = MARKS[mark].map(({ d, paint }) =>
    paint === "fill" || paint === "ground" ? `<path d="${d}" fill="${paint === "fill" ? ink : ground}"/>` : `<path d="${d}" fill="none" stroke="${paint === "line" ? ink : ground}" stroke-width="1.6"/>`,
  );
  return `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">${paths.join("")}</svg>`)}`;
}

/** Name the tab while the component is shown; without a state it keeps the icon of the product. */
export function useTab(title: string, state: string): void {
  useEffect(() => {
    if (title) document.title = `${SIGNS[stateOf(state).mark] ?? ""} ${title}`.trim();
  }, [title, state]);
  useEffect(() => {
    const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
    if (!icon || !state) return;
    icon.href = iconOf(state);
    return () => {
      icon.href = "/mark.svg";
    };
  }, [state]);
}
