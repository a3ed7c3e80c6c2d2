// One stream per visible tab: it follows, backs off, closes while the tab is hidden, and says how it stands.
import { useEffect, useRef, useSyncExternalStore } from "react";
import { address } from "./client";

export type Connection = { state: "idle" | "live" | "reconnecting" | "stale"; since: number };
let connection: Connection = { state: "idle", since: 0 };
const watchers = new Set<() => void>();

function set(state: Connection["state"]): void {
  if (state === connection.state) return;
  connection = { state, since: Date.now() };
  for (const one of watchers) one();
}

export const useConnection = (): Connection =>
  useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => connection,
  );

const HIDDEN_MS = 30_000;
const RECONNECTING_MS = 3_000;
const STALE_MS = 15_000;

export interface Source {
  path: string;
  /** Parameters of the request; `last` is the position of the last message, empty at first. */
  query: (last: string) => Record<string, unknown>;
  events: string[];
  /** Takes a message; the text of its `id` is the position. */
  take: (event: string, data: unknown, id: string) => void;
}

class Follower {
  #source: EventSource | null = null;
  #timers = new Set<number>();
  #pause = 1_000;
  #stopped = false;
  #last = "";

  constructor(readonly of: Source) {
    document.addEventListener("visibilitychange", this.#seen);
    this.#open();
  }

  #later(ms: number, run: () => void): void {
    const timer = window.setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, ms);
    this.#timers.add(timer);
  }

  #clear(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  #open = (): void => {
    if (this.#stopped || this.#source) return;
    const source = new EventSource(address(this.of.path, this.of.query(this.#last)));
    this.#source = source;
    source.onopen = () => {
      this.#clear();
      this.#pause = 1_000;
      set("live");
    };
    source.onerror = () => {
      source.close();
      this.#source = null;
      if (this.#stopped) return;
      this.#later(RECONNECTING_MS, () => connection.state === "live" && set("reconnecting"));
      this.#later(STALE_MS, () => set("stale"));
      this.#later(this.#pause * (0.75 + Math.random() / 2), this.#open);
      this.#pause = Math.min(30_000, this.#pause * 2);
    };
    for (const name of this.of.events) {
      source.addEventListener(name, (event) => {
        const { data, lastEventId } = event as MessageEvent<string>;
        if (typeof data !== "string") return;
        if (lastEventId) this.#last = lastEventId;
        this.of.take(name, JSON.parse(data || "{}"), lastEventId);
      });
    }
  };

  #seen = (): void => {
    if (document.hidden) {
      this.#later(HIDDEN_MS, () => {
        if (!document.hidden) return;
        this.#source?.close();
        this.#source = null;
      });
    } else this.#open();
  };

  stop(): void {
    this.#stopped = true;
    document.removeEventListener("visibilitychange", this.#seen);
    this.#clear();
    this.#source?.close();
    this.#source = null;
    set("idle");
  }
}

/** Follow a stream while the component is shown and `key` is not empty. */
export function useLive(key: string, source: Source): void {
  const latest = useRef(source);
  latest.current = source;
  useEffect(() => {
    if (!key) return;
    const follower = new Follower({
      path: latest.current.path,
      events: latest.current.events,
      query: (last) => latest.current.query(last),
      take: (...message) => latest.current.take(...message),
    });
    return () => follower.stop();
  }, [key]);
}
