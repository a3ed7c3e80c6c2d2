import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { get } from "../api/client";
import { Track, type TrackPart } from "../moments/track";

const trackOf = (id: string) => ({ queryKey: ["track", id], queryFn: ({ signal }: { signal: AbortSignal }) => get<TrackPart>(`/api/executions/${encodeURIComponent(id)}/track`, {}, signal) });

/** The tracks of children that are unfolded, by their ids; read again while the execution runs. */
export function useChildTracks(ids: readonly string[], isOpen: boolean): ReadonlyMap<string, Track> {
  const parts = useQueries({ queries: ids.map((id) => ({ ...trackOf(id), refetchInterval: isOpen ? 2_000 : (false as const) })), combine: (found) => found.map((one) => one.data) });
  return useMemo(() => {
    const found = new Map<string, Track>();
    parts.forEach((part, at) => {
      const id = ids[at];
      if (!part || !id) return;
      const track = new Track();
      track.apply(part);
      found.set(id, track);
    });
    return found;
  }, [parts, ids]);
}
