import { useEffect, useReducer, useRef, useState } from "react";
import { get } from "../api/client";
import { useLive } from "../api/live";
import { Track, type TrackPart } from "./track";

/** Load the track of an execution and follow it; messages are applied once a frame. */
export function useTrack(id: string): { track: Track | null; error: unknown; reload: () => void; ended: boolean } {
  const track = useRef<Track | null>(null);
  const waiting = useRef<TrackPart[]>([]);
  const [, shown] = useReducer((now: number) => now + 1, 0);
  const [round, reload] = useReducer((now: number) => now + 1, 0);
  const [error, setError] = useState<unknown>(null);
  const [ended, setEnded] = useState(false);
  const [loaded, setLoaded] = useState("");

  useEffect(() => {
    const stop = new AbortController();
    setError(null);
    setLoaded("");
    setEnded(false);
    get<TrackPart>(`/api/executions/${encodeURIComponent(id)}/track`, {}, stop.signal)
      .then((part) => {
        const made = new Track();
        made.apply(part);
        track.current = made;
        setLoaded(`${id} ${round}`);
      })
      .catch((found: unknown) => stop.signal.aborted || setError(found));
    return () => stop.abort();
  }, [id, round]);

  const isLoaded = loaded === `${id} ${round}`;
  useLive(isLoaded && !ended ? `track ${id}` : "", {
    path: `/api/executions/${encodeURIComponent(id)}/track/stream`,
    query: () => ({ after: track.current?.seq ?? 0 }),
    events: ["message", "end"],
    take: (event, data) => {
      if (event === "end") {
        setEnded(true);
        return;
      }
      waiting.current.push(data as TrackPart);
      if (waiting.current.length > 1) return;
      requestAnimationFrame(() => {
        const parts = waiting.current;
        waiting.current = [];
        const isWhole = parts.every((part) => track.current?.apply(part) ?? false);
        if (isWhole) shown();
        else reload();
      });
    },
  });
  return { track: isLoaded ? track.current : null, error, reload, ended };
}

/** An answer to an action: the event after which it shows. */
interface Told {
  last_seq: number;
}
/** Does what a person asked for, and marks it with a word such as `pausing…`. */
export type Does = <T extends Told>(word: string, act: () => Promise<T>) => Promise<T>;

/** What was asked of executions, each from the click until its event is on the screen. */
export function useAsked(): { word: (id: string, head: number) => string; does: (id: string) => Does; error: unknown } {
  const [asked, setAsked] = useState<Record<string, { word: string; until: number }>>({});
  const [error, setError] = useState<unknown>(null);
  const does =
    (id: string): Does =>
    async (word, act) => {
      const mark = (until: number) => setAsked((old) => ({ ...old, [id]: { word, until } }));
      setError(null);
      mark(Infinity);
      try {
        const told = await act();
        mark(told.last_seq);
        return told;
      } catch (found) {
        mark(0);
        setError(found);
        throw found;
      }
    };
  const word = (id: string, head: number): string => {
    const found = asked[id];
    return found && head < found.until ? found.word : "";
  };
  return { word, does, error };
}

export function useDelayed<T>(value: T, ms: number): T {
  const [late, setLate] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLate(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return late;
}

export function useIsPhone(): boolean {
  const [is, set] = useState(() => matchMedia("(max-width: 640px)").matches);
  useEffect(() => {
    const query = matchMedia("(max-width: 640px)");
    const listen = () => set(query.matches);
    query.addEventListener("change", listen);
    return () => query.removeEventListener("change", listen);
  }, []);
  return is;
}
