// What Home shows: one request, read again while executions change.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { get, type Schemas } from "./client";
import { useLive } from "./live";

export type Overview = Schemas["Overview"];
export type Execution = Schemas["ExecutionRow"];
export type Need = Schemas["NeedsYou"];

const CHANGES = ["playbook.started", "playbook.finished", "execution.cancelled", "step.suspended", "signal.received", "step.failed"];

/** Read again at most every two seconds while executions change, and every ten otherwise. */
export function useOverview() {
  const client = useQueryClient();
  const found = useQuery({ queryKey: ["overview"], queryFn: ({ signal }) => get<Overview>("/api/overview", {}, signal), refetchInterval: 10_000 });
  const changed = useRef(false);
  useLive("overview", {
    path: "/api/executions/stream",
    query: () => ({ type: CHANGES }),
    events: CHANGES,
    take: () => {
      changed.current = true;
    },
  });
  useEffect(() => {
    const timer = setInterval(() => {
      if (!changed.current) return;
      changed.current = false;
      void client.invalidateQueries({ queryKey: ["overview"] });
    }, 2_000);
    return () => clearInterval(timer);
  }, [client]);
  return found;
}
