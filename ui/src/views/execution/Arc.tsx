import { Link } from "@tanstack/react-router";
import { useEvent } from "../../api/executions";
import { arcState, decidedAt, type Edge } from "../../graph/draw";
import type { Track } from "../../moments/track";
import { Sign } from "../../parts/Mark";
import { plain } from "../../words/format";
import css from "./Panel.module.css";

/** An arc as its router saw it, in a `next.evaluated` event. */
interface Seen {
  arc: number;
  matched?: boolean;
  read?: Record<string, unknown>;
  error?: string;
}
const WORDS = { taken: ["check", "green", "taken"], refused: ["cross", "grey", "not taken"], open: ["hollow", "grey", "not evaluated"] } as const;

interface Props {
  id: string;
  edge: Edge;
  track: Track;
  seq: number;
}

/** What the router saw when it last looked at an arc, and the event that says so. */
function useSeen(id: string, edge: Edge, track: Track, seq: number): { at: number; seen: Seen | undefined } {
  const at = decidedAt(track, edge, seq);
  const arcs = useEvent(id, at).data?.payload.arcs;
  return { at, seen: Array.isArray(arcs) ? (arcs as Seen[]).findLast((one) => one.arc === edge.arc) : undefined };
}

function Read({ seen }: { seen: Seen | undefined }) {
  const values = Object.entries(seen?.read ?? {});
  return (
    <>
      {seen?.error ? <p className={css.errortext}>{plain(seen.error)}</p> : null}
      {values.length > 0 ? (
        <dl className={css.read}>
          {values.map(([name, value]) => (
            <div key={name}>
              <dt>{plain(name)}</dt>
              <dd>{plain(JSON.stringify(value) ?? "")}</dd>
            </div>
          ))}
        </dl>
      ) : null}
    </>
  );
}

/** An arc in the panel of its step. */
export function Arc({ id, edge, track, seq, isSelected }: Props & { isSelected: boolean }) {
  const [mark, hue, word] = WORDS[arcState(track, edge, seq)];
  const { seen } = useSeen(id, edge, track, seq);
  return (
    <div className={`${css.arc} ${isSelected ? css.chosen : ""}`}>
      <p className={css.arcline}>
        <Sign mark={mark} hue={hue} size={14} />
        <strong>→ {plain(edge.target)}</strong>
        <span className={css.state}>{word}</span>
      </p>
      <code className={css.when}>{edge.when ? plain(edge.when) : edge.kind === "failure" ? "after a failure" : "no condition"}</code>
      <Read seen={seen} />
    </div>
  );
}

/** What a card on an arc says of the moment: holds or not, the values that its condition read, and the event. */
export function ArcNow({ id, edge, track, seq }: Props) {
  const [mark, hue, word] = WORDS[arcState(track, edge, seq)];
  const { at, seen } = useSeen(id, edge, track, seq);
  const holds = seen && edge.when ? `${seen.matched ? "holds" : "does not hold"}, ` : "";
  const passes = [edge.args ? "passes arguments" : "", edge.set ? "sets values" : ""].filter(Boolean).join(", ");
  return (
    <>
      <p className={css.arcline}>
        <Sign mark={mark} hue={hue} size={14} />
        <span>
          {holds}
          {word}
          {at ? (
            <>
              {" at "}
              <Link to="/executions/$id" params={{ id }} search={((old: object) => ({ ...old, at })) as never}>event {at}</Link>
            </>
          ) : null}
        </span>
      </p>
      <Read seen={seen} />
      {passes ? <p className={css.state}>{passes}</p> : null}
    </>
  );
}
