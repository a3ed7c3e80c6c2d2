import { plain } from "../words/format";
import css from "./Changes.module.css";

export interface Change {
  path?: string;
  before?: unknown;
  after?: unknown;
}

const text = (value: unknown) => (value === undefined || value === null ? "–" : plain(JSON.stringify(value)).slice(0, 400));

/** Values that differ, each with the one before and the one after; signs carry the meaning. */
export function Changes({ changes, none = "Nothing changed." }: { changes: readonly Change[]; none?: string }) {
  if (changes.length === 0) return <p className={css.none}>{none}</p>;
  return (
    <div className={css.changes} role="table" aria-label="Changes">
      {changes.slice(0, 200).map((one, at) => (
        <div key={`${one.path ?? ""} ${at}`} role="row" className={css.change}>
          <code role="cell">{plain(String(one.path ?? ""))}</code>
          <del role="cell">{text(one.before)}</del>
          <ins role="cell">{text(one.after)}</ins>
        </div>
      ))}
    </div>
  );
}
