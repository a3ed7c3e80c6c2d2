import { plain } from "../words/format";
import css from "./Diff.module.css";

const MOST = 2_000;
const lookOf = (line: string): string => (line.startsWith("@@") ? "place" : line.startsWith("+++") || line.startsWith("---") ? "file" : line.startsWith("+") ? "more" : line.startsWith("-") ? "less" : "same");

/** A unified diff; signs at the start of a line carry the meaning, colours repeat it. */
export function Diff({ text }: { text: string }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <pre className={css.diff}>
      {lines.slice(0, MOST).map((line, at) => (
        <span key={at} className={css[lookOf(line)]}>
          {plain(line) || " "}
        </span>
      ))}
      {lines.length > MOST ? <span className={css.file}>first {MOST} of {lines.length} lines</span> : null}
    </pre>
  );
}
