// Arcs, and nodes that are too small to read, on one canvas.
import type { Schemas } from "../api/client";
import type { Track } from "../moments/track";
import { paintMark } from "../parts/paint";
import { stateOf } from "../words/states";

export type Graph = Schemas["Graph"];
export type Node = Schemas["GraphNode"];
export type Edge = Schemas["GraphEdge"];
export interface View {
  x: number;
  y: number;
  k: number;
}
export const FAR = 0.45;
export const edgeKey = (edge: Edge): string => `${edge.source}#${edge.arc}`;

export type ArcState = "taken" | "refused" | "open";
export function arcState(track: Track | null, edge: Edge, seq: number): ArcState {
  if (!track) return "open";
  if (edge.arc < 0) return track.step(edge.target, seq) ? "taken" : "open";
  if (track.at(`a:${edgeKey(edge)}`, seq)) return "taken";
  return track.at(`r:${edgeKey(edge)}`, seq) ? "refused" : "open";
}

/** The event at which a router last looked at an arc; 0 if it has not. */
export const decidedAt = (track: Track | null, edge: Edge, seq: number): number =>
  track && edge.arc >= 0 ? Math.max(track.last(`a:${edgeKey(edge)}`, seq), track.last(`r:${edgeKey(edge)}`, seq)) : 0;

interface Scene {
  graph: Graph;
  track: Track | null;
  seq: number;
  view: View;
  selected: { step?: string; arc?: string };
  hovered: string | null;
  isDim: (name: string) => boolean;
  isHidden: (name: string) => boolean;
}

export function draw(canvas: HTMLCanvasElement, scene: Scene): void {
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const ratio = devicePixelRatio;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const style = getComputedStyle(canvas);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`);
  const { view } = scene;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.setTransform(ratio * view.k, 0, 0, ratio * view.k, view.x * ratio, view.y * ratio);
  const box = { left: -view.x / view.k, top: -view.y / view.k, right: (width - view.x) / view.k, bottom: (height - view.y) / view.k };
  for (const edge of scene.graph.edges) {
    if (isOutside(edge, box) || scene.isHidden(edge.source) || scene.isHidden(edge.target)) continue;
    pen.globalAlpha = scene.isDim(edge.source) && scene.isDim(edge.target) ? 0.25 : 1;
    drawEdge(pen, edge, scene, colour);
  }
  pen.globalAlpha = 1;
  if (view.k < FAR) for (const node of scene.graph.nodes) if (!scene.isHidden(node.name)) drawFar(pen, node, scene, colour);
}

function isOutside(edge: Edge, box: { left: number; top: number; right: number; bottom: number }): boolean {
  let left = Infinity;
  let right = -Infinity;
  let top = Infinity;
  let bottom = -Infinity;
  for (const [x, y] of edge.points as [number, number][]) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  return right < box.left || left > box.right || bottom < box.top || top > box.bottom;
}

function drawEdge(pen: CanvasRenderingContext2D, edge: Edge, scene: Scene, colour: (name: string) => string): void {
  const points = edge.points as [number, number][];
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last) return;
  const state = arcState(scene.track, edge, scene.seq);
  const isWaiting = state === "taken" && (scene.track?.at(`n:${edge.target}`, scene.seq) ?? 0) > 0;
  const isChosen = (scene.selected.step === edge.source && scene.selected.arc === String(edge.arc)) || scene.hovered === edgeKey(edge);
  const hue = isChosen ? "accent" : edge.kind === "compensation" ? "violet" : isWaiting ? "amber" : state === "taken" ? "text-2" : state === "refused" ? "text-3" : "border";
  pen.strokeStyle = colour(hue);
  pen.fillStyle = pen.strokeStyle;
  pen.lineWidth = state === "taken" || isChosen ? 2 : 1;
  pen.setLineDash(edge.kind === "compensation" ? [8, 3, 2, 3] : state === "taken" || !scene.track ? [] : state === "refused" ? [6, 4] : [1.5, 4]);
  pen.lineCap = "round";
  pen.lineJoin = "round";
  pen.beginPath();
  pen.moveTo(first[0], first[1]);
  for (let at = 1; at < points.length - 1; at += 1) {
    const here = points[at] as [number, number];
    const next = points[at + 1] as [number, number];
    pen.arcTo(here[0], here[1], next[0], next[1], 8);
  }
  pen.lineTo(last[0], last[1]);
  pen.stroke();
  pen.setLineDash([]);
  const before = points.at(-2) ?? first;
  head(pen, before, last);
  const second = points[1] ?? last;
  if (edge.kind === "failure") label(pen, "▲", along(first, second, 8), colour("red"), colour("bg"));
  if (state === "refused") label(pen, "✕", along(first, second, edge.kind === "failure" ? 22 : 10), colour("text-3"), colour("bg"));
  if (isWaiting) dot(pen, along(last, before, 14), colour("amber"));
  const taken = scene.track?.at(`a:${edgeKey(edge)}`, scene.seq) ?? 0;
  if (taken > 1) label(pen, `×${taken}`, along(last, before, 22), colour("text-2"), colour("bg"));
  else if (edge.kind === "back") label(pen, "↺", along(last, before, 18), colour("text-2"), colour("bg"));
}

function along(from: [number, number], to: [number, number], by: number): [number, number] {
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
  const part = Math.min(1, by / length);
  return [from[0] + (to[0] - from[0]) * part, from[1] + (to[1] - from[1]) * part];
}

function head(pen: CanvasRenderingContext2D, from: [number, number], to: [number, number]): void {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  pen.beginPath();
  pen.moveTo(to[0], to[1]);
  pen.lineTo(to[0] - 8 * Math.cos(angle - 0.45), to[1] - 8 * Math.sin(angle - 0.45));
  pen.lineTo(to[0] - 8 * Math.cos(angle + 0.45), to[1] - 8 * Math.sin(angle + 0.45));
  pen.closePath();
  pen.fill();
}

function label(pen: CanvasRenderingContext2D, text: string, [x, y]: [number, number], ink: string, ground: string): void {
  pen.font = "600 11px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const wide = pen.measureText(text).width + 4;
  pen.fillStyle = ground;
  pen.fillRect(x - wide / 2, y - 7, wide, 14);
  pen.fillStyle = ink;
  pen.fillText(text, x, y);
}

function dot(pen: CanvasRenderingContext2D, [x, y]: [number, number], ink: string): void {
  pen.fillStyle = ink;
  pen.beginPath();
  pen.arc(x, y, 5, 0, Math.PI * 2);
  pen.fill();
}

function drawFar(pen: CanvasRenderingContext2D, node: Node, scene: Scene, colour: (name: string) => string): void {
  const state = stateOf(scene.track?.step(node.name, scene.seq));
  pen.globalAlpha = scene.isDim(node.name) ? 0.25 : 1;
  pen.fillStyle = colour(scene.selected.step === node.name ? "selected" : "surface");
  pen.strokeStyle = colour(scene.selected.step === node.name ? "accent" : state.hue);
  pen.lineWidth = state.border === "thick" ? 3 : 2;
  pen.setLineDash(state.border === "dotted" ? [2, 4] : []);
  pen.beginPath();
  pen.roundRect(node.x, node.y, node.width, node.height, 6);
  pen.fill();
  pen.stroke();
  pen.setLineDash([]);
  pen.fillStyle = colour(state.hue);
  pen.fillRect(node.x, node.y + 4, 8, node.height - 8);
  paintMark(pen, scene.track?.step(node.name, scene.seq), [node.x + node.width / 2 - 16, node.y + node.height / 2 - 16], 2, colour);
  if (state.word === "failed" || scene.selected.step === node.name) {
    pen.fillStyle = colour("text");
    pen.font = `600 ${Math.min(40, 13 / scene.view.k)}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.fillText(node.name, node.x + node.width / 2, node.y - 8 / scene.view.k);
  }
  pen.globalAlpha = 1;
}

/** The middle of the longest part of an arc: between the corners, and beside the steps. */
export function middleOf(edge: Edge): [number, number] {
  const points = edge.points as [number, number][];
  let best: [number, number] = points[0] ?? [0, 0];
  let longest = -1;
  for (let at = 1; at < points.length; at += 1) {
    const [ax, ay] = points[at - 1] as [number, number];
    const [bx, by] = points[at] as [number, number];
    const length = Math.hypot(bx - ax, by - ay);
    if (length > longest) [longest, best] = [length, [(ax + bx) / 2, (ay + by) / 2]];
  }
  return best;
}

/** The arc under a point, within a few pixels. */
export function hit(graph: Graph, x: number, y: number, within: number): Edge | null {
  let best: Edge | null = null;
  let least = within;
  for (const edge of graph.edges) {
    const points = edge.points as [number, number][];
    for (let at = 1; at < points.length; at += 1) {
      const distance = toSegment(x, y, points[at - 1] as [number, number], points[at] as [number, number]);
      if (distance < least) {
        least = distance;
        best = edge;
      }
    }
  }
  return best;
}

function toSegment(x: number, y: number, [ax, ay]: [number, number], [bx, by]: [number, number]): number {
  const length = (bx - ax) ** 2 + (by - ay) ** 2;
  const part = length ? Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length)) : 0;
  return Math.hypot(x - ax - part * (bx - ax), y - ay - part * (by - ay));
}
