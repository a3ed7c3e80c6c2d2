import { Fragment, type ReactNode, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Track } from "../moments/track";
import { Button } from "../parts/controls";
import { useKeys } from "../parts/keys";
import { plain } from "../words/format";
import { arcState, draw, type Edge, edgeKey, FAR, type Graph, hit, middleOf, type View } from "./draw";
import css from "./graph.module.css";
import { type Figures, NodeBox } from "./nodes";
import { Sliding } from "./sliding";

interface Props {
  graph: Graph;
  track: Track | null;
  seq: number;
  /** Whether it follows the last event. */
  isLive?: boolean;
  vs?: number;
  step?: string;
  arc?: string;
  /** What is wrong with a step, by its name. */
  notes?: Record<string, string>;
  /** How steps went lately, by name. */
  figures?: Record<string, Figures>;
  /** What a join waits for, by its step. */
  hints?: Record<string, string>;
  /** Without what is done, or only what failed. */
  show?: "open" | "failed";
  onShow?: (show: "open" | "failed" | undefined) => void;
  onStep: (step: string) => void;
  /** A click on the progress of a loop. */
  onItems?: (step: string) => void;
  onArc?: (edge: Edge) => void;
  /** What the card of an arc says of the moment. */
  arcNow?: (edge: Edge) => ReactNode;
}
/** The arc whose card is open, and where in the graph; one that has the focus comes after its button in the order of keys. */
interface Shown {
  edge: Edge;
  at: [x: number, y: number];
  isFocused: boolean;
}
const MOST_NODES = 400;
/** The height that the tools above the graph take. */
const TOOLS = 44;
/** States that `hide what is done` hides. */
const DONE = new Set(["done", "skipped", "absorbed", "forced", "repaired", "undone"]);
const LEAVES_MS = 300; // how long the pointer may need from an arc to its card
const clamp = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value));

/** The net: arcs on a canvas, nodes in view as buttons above it. */
export function GraphView({ graph, track, seq, isLive, vs, step, arc, notes, figures, hints, show, onShow, onStep, onItems, onArc, arcNow }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [view, setView] = useState<View | null>(null);
  const [text, setText] = useState("");
  const [shown, setShown] = useState<Shown | null>(null);
  const leaving = useRef<number | undefined>(undefined);
  const [focused, setFocused] = useState<string>();
  const [, setTheme] = useState(0);
  const drag = useRef<{ x: number; y: number; view: View; moved: boolean } | null>(null);
  const pointers = useRef(new Map<number, { x: number; y: number }>());

  const fitted = useCallback((): View => {
    const { width, height } = size;
    const k = clamp(Math.min((width - 48) / graph.width, (height - TOOLS - 24) / graph.height), 0.08, 1);
    const isHuge = k < 0.2;
    const entry = graph.nodes.find((node) => node.name === graph.entry) ?? graph.nodes[0];
    if (isHuge && entry) return { k: FAR, x: width / 2 - (entry.x + entry.width / 2) * FAR, y: 48 - entry.y * FAR };
    return { k, x: (width - graph.width * k) / 2, y: Math.max(TOOLS, (height - graph.height * k) / 2) };
  }, [graph, size]);

  useLayoutEffect(() => {
    const found = frame.current;
    if (!found) return;
    const measure = () => setSize({ width: found.clientWidth, height: found.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(found);
    const theme = () => setTheme((now) => now + 1);
    addEventListener("noetl-theme", theme);
    return () => {
      observer.disconnect();
      removeEventListener("noetl-theme", theme);
    };
  }, []);
  const isPlaced = useRef(false);
  useEffect(() => {
    isPlaced.current = false;
  }, [graph]);
  useEffect(() => {
    if (size.width === 0) return;
    if (!isPlaced.current) setView(fitted());
  }, [size, fitted]);
  const move = (next: View) => {
    isPlaced.current = true;
    setView(next);
  };
  const fit = () => {
    isPlaced.current = false;
    setView(fitted());
  };

  const asked = text.trim().toLowerCase();
  const isDim = useCallback((name: string) => asked !== "" && !name.toLowerCase().includes(asked), [asked]);
  const isHidden = (name: string): boolean => {
    if (!show || !track || name === step) return false;
    const state = track.step(name, seq);
    return show === "failed" ? state !== "failed" && !track.at(`d:${name}`, seq) : DONE.has(state);
  };
  useEffect(() => {
    if (canvas.current && view) draw(canvas.current, { graph, track, seq, view, selected: { step, arc }, hovered: shown ? edgeKey(shown.edge) : null, isDim, isHidden });
  });

  const zoom = useCallback((by: number, x: number, y: number) => {
    isPlaced.current = true;
    setView((old) => {
      if (!old) return old;
      const k = clamp(old.k * by, 0.05, 2.5);
      return { k, x: x - ((x - old.x) / old.k) * k, y: y - ((y - old.y) / old.k) * k };
    });
  }, []);
  useEffect(() => {
    const found = frame.current;
    if (!found) return;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const box = found.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY / 240), event.clientX - box.left, event.clientY - box.top);
      else {
        isPlaced.current = true;
        setView((old) => old && { ...old, x: old.x - event.deltaX, y: old.y - event.deltaY });
      }
    };
    found.addEventListener("wheel", wheel, { passive: false });
    return () => found.removeEventListener("wheel", wheel);
  }, [zoom]);

  const near = useMemo(() => {
    const found: Record<string, string[]> = {};
    for (const edge of graph.edges) {
      (found[`>${edge.source}`] ??= []).push(edge.target);
      (found[`<${edge.target}`] ??= []).push(edge.source);
    }
    return found;
  }, [graph]);
  const walk = (event: React.KeyboardEvent) => {
    if (event.key === "Escape" && shown) {
      event.stopPropagation();
      setShown(null);
      return;
    }
    const name = (event.target as HTMLElement).dataset.step;
    if (!name) return;
    const here = graph.nodes.find((node) => node.name === name);
    const next =
      event.key === "ArrowDown" ? near[`>${name}`]?.[0]
      : event.key === "ArrowUp" ? near[`<${name}`]?.[0]
      : event.key === "ArrowRight" || event.key === "ArrowLeft"
        ? graph.nodes.filter((node) => here && node.level === here.level && (event.key === "ArrowRight" ? node.x > here.x : node.x < here.x)).sort((a, b) => (event.key === "ArrowRight" ? a.x - b.x : b.x - a.x))[0]?.name
        : undefined;
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    frame.current?.querySelector<HTMLElement>(`[data-step="${CSS.escape(next)}"]`)?.focus();
  };
  useKeys({ f: fit });

  const nodes = useMemo(() => {
    if (!view || view.k < FAR) return [];
    const box = { left: -view.x / view.k, top: -view.y / view.k, right: (size.width - view.x) / view.k, bottom: (size.height - view.y) / view.k };
    return graph.nodes.filter((node) => node.x + node.width > box.left - 50 && node.x < box.right + 50 && node.y + node.height > box.top - 50 && node.y < box.bottom + 50).slice(0, MOST_NODES);
  }, [graph, view, size]);
  const keep = () => clearTimeout(leaving.current);
  const leave = () => {
    keep();
    leaving.current = window.setTimeout(() => setShown((old) => (old?.isFocused ? old : null)), LEAVES_MS);
  };
  useEffect(() => keep, []);
  const at = (event: React.PointerEvent): [number, number] => {
    const box = (frame.current as HTMLDivElement).getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const under = (event: React.PointerEvent): Edge | null => {
    if (!view) return null;
    const [x, y] = at(event);
    return hit(graph, (x - view.x) / view.k, (y - view.y) / view.k, 6 / view.k);
  };
  // Beside the arc and within the frame, in its own size at every zoom.
  const card = ({ edge, at: [x, y] }: Shown) => {
    if (!view) return null;
    const isLow = y * view.k + view.y > size.height / 2;
    const left = clamp(x * view.k + view.x + 12, 8, Math.max(8, size.width - CARD_WIDTH - 8));
    const style = { left: (left - view.x) / view.k, top: y + (isLow ? -8 : 8) / view.k, transform: `scale(${1 / view.k})${isLow ? " translateY(-100%)" : ""}` };
    return <ArcCard edge={edge} track={track} seq={seq} style={style}>{arcNow?.(edge)}</ArcCard>;
  };
  // The arcs of one step are in the order of keys, after it; the pointer finds them on the canvas.
  const out = graph.edges.filter((edge) => edge.source === (focused ?? step) && edge.arc >= 0);
  const arcButton = (edge: Edge) => {
    const [x, y] = middleOf(edge);
    const isShown = shown?.isFocused && edgeKey(shown.edge) === edgeKey(edge);
    return (
      <Fragment key={edge.arc}>
        <button
          type="button"
          data-arc={edge.arc}
          className={css.arc}
          style={{ left: x, top: y }}
          aria-label={`arc to ${plain(edge.target)}: ${WORDS[arcState(track, edge, seq)]}`}
          aria-describedby={isShown ? "arc-card" : undefined}
          onFocus={() => setShown({ edge, at: [x, y], isFocused: true })}
          onClick={() => onArc?.(edge)}
        />
        {isShown && shown ? card(shown) : null}
      </Fragment>
    );
  };
  return (
    <div
      ref={frame}
      className={css.frame}
      role="group"
      aria-label="Graph"
      data-own-arrows
      onKeyDown={walk}
      onPointerDown={(event) => {
        if ((event.target as HTMLElement).closest("button, input, [data-card]") || !view) return;
        const [x, y] = at(event);
        pointers.current.set(event.pointerId, { x, y });
        drag.current = { x, y, view, moved: false };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const [x, y] = at(event);
        const known = pointers.current.get(event.pointerId);
        if (known && pointers.current.size === 2) {
          const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
          if (other) {
            const before = Math.hypot(known.x - other.x, known.y - other.y);
            const after = Math.hypot(x - other.x, y - other.y);
            if (before > 0) zoom(after / before, (x + other.x) / 2, (y + other.y) / 2);
          }
          pointers.current.set(event.pointerId, { x, y });
          return;
        }
        const from = drag.current;
        if (from && pointers.current.size === 1) {
          if (Math.hypot(x - from.x, y - from.y) > 3) from.moved = true;
          if (from.moved) move({ ...from.view, x: from.view.x + x - from.x, y: from.view.y + y - from.y });
          return;
        }
        if ((event.target as HTMLElement).closest("[data-card]")) return keep();
        const edge = (event.target as HTMLElement).closest("button, input") ? null : under(event);
        if (!edge || !view) return leave();
        keep();
        // The card stays where it opened, so that the pointer can reach it.
        if (!shown || edgeKey(shown.edge) !== edgeKey(edge)) setShown({ edge, at: [(x - view.x) / view.k, (y - view.y) / view.k], isFocused: false });
      }}
      onPointerUp={(event) => {
        pointers.current.delete(event.pointerId);
        const from = drag.current;
        drag.current = null;
        if (from && !from.moved) {
          const edge = under(event);
          if (edge && edge.arc >= 0) onArc?.(edge);
          else if (view && view.k < FAR) {
            const [x, y] = at(event);
            const node = graph.nodes.find((one) => !isHidden(one.name) && within(one, (x - view.x) / view.k, (y - view.y) / view.k));
            if (node) onStep(node.name);
          }
        }
      }}
      onPointerLeave={leave}
      onFocus={(event) => {
        const name = (event.target as HTMLElement).dataset.step;
        if (name !== undefined) setFocused(name);
        if (!(event.target as HTMLElement).closest("[data-arc], [data-card]")) setShown((old) => (old?.isFocused ? null : old));
      }}
      onBlur={(event) => {
        if (event.currentTarget.contains(event.relatedTarget)) return;
        setFocused(undefined);
        setShown((old) => (old?.isFocused ? null : old));
      }}
    >
      <canvas ref={canvas} className={css.canvas} aria-hidden />
      <div className={css.layer} style={view ? { transform: `translate(${view.x}px, ${view.y}px) scale(${view.k})` } : undefined}>
        {nodes.filter((node) => !isHidden(node.name)).map((node) => (
          <Fragment key={node.name}>
            <NodeBox
              node={node}
              track={track}
              seq={seq}
              head={track?.seq ?? 0}
              isSelected={node.name === step}
              note={notes?.[node.name]}
              figures={figures?.[node.name]}
              hint={hints?.[node.name]}
              isDim={isDim(node.name)}
              isEntry={node.name === graph.entry}
              isFinal={node.name === graph.final}
              isChanged={vs !== undefined && track !== null && hasChanged(track, node.name, vs, seq)}
              onSelect={onStep}
              onItems={onItems}
            />
            {onArc && node.name === (focused ?? step) ? out.map(arcButton) : null}
          </Fragment>
        ))}
        {shown && !shown.isFocused ? card(shown) : null}
        {isLive && track ? <Sliding graph={graph} track={track} seq={seq} /> : null}
      </div>
      <div className={css.tools}>
        <input type="search" placeholder="Find a step" aria-label="Find a step" value={text} onChange={(event) => setText(event.target.value)} />
        {onShow ? (
          <select aria-label="Shown in the graph" value={show ?? ""} onChange={(event) => onShow((event.target.value || undefined) as typeof show)}>
            <option value="">all steps</option>
            <option value="open">hide what is done</option>
            <option value="failed">only failures</option>
          </select>
        ) : null}
        <Button onClick={fit} title="Fit (f)">Fit</Button>
        <Button onClick={() => zoom(1.25, size.width / 2, size.height / 2)} aria-label="Zoom in">+</Button>
        <Button onClick={() => zoom(0.8, size.width / 2, size.height / 2)} aria-label="Zoom out">−</Button>
      </div>
    </div>
  );
}

const within = (node: { x: number; y: number; width: number; height: number }, x: number, y: number): boolean =>
  x >= node.x && x <= node.x + node.width && y >= node.y && y <= node.y + node.height;

const hasChanged = (track: Track, step: string, a: number, b: number): boolean =>
  track.step(step, a) !== track.step(step, b) || track.at(`n:${step}`, a) !== track.at(`n:${step}`, b) || track.runsOf(step, a).length !== track.runsOf(step, b).length;

const WORDS = { taken: "taken", refused: "evaluated, not taken", open: "not evaluated" };

const CARD_WIDTH = 340;

function ArcCard({ edge, track, seq, style, children }: { edge: Edge; track: Track | null; seq: number; style: React.CSSProperties; children: ReactNode }) {
  return (
    <div className={css.card} style={style} id="arc-card" role="group" aria-label="Arc" data-card>
      <strong>{plain(edge.source)} → {plain(edge.target)}</strong>
      <div>{edge.kind === "compensation" ? "undoes it when a later step fails" : <code>{edge.when ? plain(edge.when) : "no condition"}</code>}</div>
      {children ?? (track ? <div>{WORDS[arcState(track, edge, seq)]}</div> : null)}
    </div>
  );
}
