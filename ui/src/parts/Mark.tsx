import { plain } from "../words/format";
import { MARKS, type Hue, type MarkName, stateOf } from "../words/states";
import css from "./Mark.module.css";

interface Drawn {
  mark: MarkName;
  hue: Hue;
  label?: string;
  size?: number;
}

export function Sign({ mark, hue, label, size = 16 }: Drawn) {
  const named = label ? { role: "img", "aria-label": label } : { "aria-hidden": true };
  return (
    <svg className={`${css.mark} ${css[hue]}`} viewBox="0 0 16 16" width={size} height={size} {...named}>
      {label ? <title>{label}</title> : null}
      {MARKS[mark].map((stroke) => (
        <path key={stroke.d} d={stroke.d} className={css[stroke.paint]} />
      ))}
    </svg>
  );
}

/** The mark of a state, with its word beside it or as its label. */
export function Mark({ state, word = false, size }: { state: string; word?: boolean; size?: number }) {
  const found = stateOf(state);
  if (!word) return <Sign mark={found.mark} hue={found.hue} label={found.word} size={size} />;
  return (
    <span className={`${css.worded} ${css[found.hue]}`}>
      <Sign mark={found.mark} hue={found.hue} size={size} />
      {found.word}
    </span>
  );
}

/** A state of something that is no execution: its own table of marks, the word beside it. */
export function Stated({ of, looks, className }: { of: string; looks: Record<string, [MarkName, Hue]>; className?: string }) {
  const [mark, hue] = looks[of] ?? ["hollow", "grey"];
  return (
    <span className={className}>
      <Sign mark={mark} hue={hue} size={14} /> {plain(of)}
    </span>
  );
}
