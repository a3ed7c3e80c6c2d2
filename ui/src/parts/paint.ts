// Marks on a canvas, from the paths that the sprite has too.
import { MARKS, stateOf } from "../words/states";

const paths = new Map<string, Path2D>();
function pathOf(d: string): Path2D {
  let found = paths.get(d);
  if (!found) paths.set(d, (found = new Path2D(d)));
  return found;
}

/** Draw the mark of a state at a place; `scale` 1 is 16 pixels. */
export function paintMark(pen: CanvasRenderingContext2D, name: string | null | undefined, [x, y]: [number, number], scale: number, colour: (name: string) => string): void {
  const state = stateOf(name);
  pen.save();
  pen.translate(x, y);
  pen.scale(scale, scale);
  pen.lineWidth = 1.5;
  for (const stroke of MARKS[state.mark]) {
    pen.fillStyle = stroke.paint === "ground" ? colour("bg") : colour(state.hue);
    pen.strokeStyle = stroke.paint === "ground-line" ? colour("bg") : colour(state.hue);
    if (stroke.paint === "fill" || stroke.paint === "ground") pen.fill(pathOf(stroke.d));
    else pen.stroke(pathOf(stroke.d));
  }
  pen.restore();
}
