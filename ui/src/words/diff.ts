// The difference of two texts by lines, as a unified diff, and the merge of two texts that began as one.

interface Part {
  /** First line and line after the last, in the old and in the new text. */
  old: [number, number];
  fresh: [number, number];
}
const linesOf = (text: string): string[] => text.replace(/\n$/, "").split("\n");
const MOST_STEPS = 1_000;

/** Find the parts that differ (Myers); texts that differ too much are one part. */
function partsOf(a: string[], b: string[]): Part[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const one = a.slice(head, a.length - tail);
  const two = b.slice(head, b.length - tail);
  if (one.length === 0 && two.length === 0) return [];
  const pairs = common(one, two);
  const found: Part[] = [];
  let [x, y] = [0, 0];
  for (const [i, j] of [...pairs, [one.length, two.length] as [number, number]]) {
    if (i > x || j > y) found.push({ old: [head + x, head + i], fresh: [head + y, head + j] });
    [x, y] = [i + 1, j + 1];
  }
  return found;
}

/** Pair the lines that both texts have, in order. */
function common(a: string[], b: string[]): [number, number][] {
  const reach = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  const most = Math.min(a.length + b.length, MOST_STEPS);
  for (let d = 0; d <= most; d += 1) {
    trace.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      const isDown = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = isDown ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(trace, a.length, b.length);
    }
  }
  return [];
}

function walkBack(trace: Map<number, number>[], m: number, n: number): [number, number][] {
  const pairs: [number, number][] = [];
  let [x, y] = [m, n];
  for (let d = trace.length - 1; d >= 0 && (x > 0 || y > 0); d -= 1) {
    const reach = trace[d] as Map<number, number>;
    const k = x - y;
    const isDown = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const before = isDown ? k + 1 : k - 1;
    const px = d === 0 ? 0 : (reach.get(before) ?? 0);
    const py = d === 0 ? 0 : px - before;
    while (x > px && y > py) pairs.push([--x, --y]);
    [x, y] = [px, py];
  }
  return pairs.reverse();
}

/** Spell the difference as `diff -u` does; nothing if there is none. */
export function unified(old: string, fresh: string, around = 3): string {
  const a = linesOf(old);
  const b = linesOf(fresh);
  const parts = partsOf(a, b);
  const told: string[] = [];
  for (let at = 0; at < parts.length; ) {
    let last = at;
    while (last + 1 < parts.length && (parts[last + 1] as Part).old[0] - (parts[last] as Part).old[1] <= 2 * around) last += 1;
    const group = parts.slice(at, last + 1);
    const first = group[0] as Part;
    const end = group.at(-1) as Part;
    const from = Math.max(0, first.old[0] - around);
    const to = Math.min(a.length, end.old[1] + around);
    told.push(`@@ -${from + 1},${to - from} +${first.fresh[0] - (first.old[0] - from) + 1},${end.fresh[1] + (to - end.old[1]) - (first.fresh[0] - (first.old[0] - from))} @@`);
    let x = from;
    for (const part of group) {
      told.push(...a.slice(x, part.old[0]).map((line) => ` ${line}`), ...a.slice(...part.old).map((line) => `-${line}`), ...b.slice(...part.fresh).map((line) => `+${line}`));
      x = part.old[1];
    }
    told.push(...a.slice(x, to).map((line) => ` ${line}`));
    at = last + 1;
  }
  return told.join("\n");
}

/** Merge two texts that began as `base`; where both changed the same lines, both stand between marks. */
export function merge(base: string, mine: string, theirs: string, label: string): { text: string; conflicts: number } {
  const [o, a, b] = [linesOf(base), linesOf(mine), linesOf(theirs)];
  const changes = [...partsOf(o, a).map((part) => ({ part, by: a })), ...partsOf(o, b).map((part) => ({ part, by: b }))].sort((x, y) => x.part.old[0] - y.part.old[0] || x.part.old[1] - y.part.old[1]);
  const told: string[] = [];
  let [at, conflicts] = [0, 0];
  for (let next = 0; next < changes.length; ) {
    const start = (changes[next] as { part: Part }).part.old[0];
    let end = (changes[next] as { part: Part }).part.old[1];
    let last = next + 1;
    while (last < changes.length && ((changes[last] as { part: Part }).part.old[0] < end || (changes[last] as { part: Part }).part.old[0] === start)) {
      end = Math.max(end, (changes[last] as { part: Part }).part.old[1]);
      last += 1;
    }
    const group = changes.slice(next, last);
    const side = (by: string[]): string[] | null => {
      const own = group.filter((one) => one.by === by).map((one) => one.part);
      const first = own[0];
      const final = own.at(-1);
      return first && final ? by.slice(first.fresh[0] - (first.old[0] - start), final.fresh[1] + (end - final.old[1])) : null;
    };
    const [one, two] = [side(a), side(b)];
    told.push(...o.slice(at, start));
    if (!one || !two || one.join("\n") === two.join("\n")) told.push(...(one ?? two ?? []));
    else {
      conflicts += 1;
      told.push("<<<<<<< yours", ...one, "=======", ...two, `>>>>>>> ${label}`);
    }
    at = end;
    next = last;
  }
  told.push(...o.slice(at));
  return { text: `${told.join("\n")}\n`, conflicts };
}
