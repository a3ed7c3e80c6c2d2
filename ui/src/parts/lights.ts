// A step under the pointer, or with the focus, lights up everywhere on the page: whatever names it has `data-of-step`.
import { useEffect } from "react";

export function useLights(): void {
  useEffect(() => {
    let lit = "";
    const light = (event: Event) => {
      const name = event.target instanceof Element ? (event.target.closest<HTMLElement>("[data-of-step]")?.dataset.ofStep ?? "") : "";
      if (name === lit) return;
      lit = name;
      for (const one of document.querySelectorAll("[data-lit]")) one.removeAttribute("data-lit");
      if (name) for (const one of document.querySelectorAll(`[data-of-step="${CSS.escape(name)}"]`)) one.setAttribute("data-lit", "");
    };
    document.addEventListener("pointerover", light);
    document.addEventListener("focusin", light);
    return () => {
      document.removeEventListener("pointerover", light);
      document.removeEventListener("focusin", light);
    };
  }, []);
}
