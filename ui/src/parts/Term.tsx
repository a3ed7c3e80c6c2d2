import { type ReactNode, useId, useState } from "react";
import { createPortal } from "react-dom";
import { GLOSSARY, type Word } from "../words/glossary";
import { Words } from "./controls";
import css from "./Term.module.css";

const WIDE = 320;
const HIGH = 140; // of the longest meaning

/** A word with its meaning, on hover, focus or a tap; for headings and column heads, not for every place where it stands. */
export function Term({ word, children }: { word: Word; children?: ReactNode }) {
  const id = useId();
  const [at, setAt] = useState<{ left: number; top: number; isAbove: boolean } | null>(null);
  const show = (event: { currentTarget: HTMLElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    const isAbove = box.bottom > innerHeight - HIGH;
    setAt({ left: Math.max(8, Math.min(box.left, innerWidth - WIDE - 8)), top: isAbove ? box.top - 4 : box.bottom + 4, isAbove });
  };
  const hide = () => setAt(null);
  return (
    <>
      <span
        className={css.term}
        tabIndex={0}
        data-term={word}
        aria-describedby={at ? id : undefined}
        onPointerEnter={show}
        onPointerLeave={hide}
        onClick={show}
        onFocus={show}
        onBlur={hide}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || !at) return;
          event.stopPropagation();
          hide();
        }}
      >
        {children ?? word}
      </span>
      {at
        ? createPortal(
            <div role="tooltip" id={id} className={`${css.tip} ${at.isAbove ? css.above : ""}`} style={{ left: at.left, top: at.top }}>
              <strong>{word}</strong> <Words text={GLOSSARY[word]} />
            </div>,
            document.body,
          )
        : null}
    </>
  );
}
