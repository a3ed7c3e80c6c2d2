// How the executions of a playbook went.
import { useQuery } from "@tanstack/react-query";
import { get, type Schemas } from "./client";

export type Statistics = Schemas["Statistics"];
export type StepFigures = Schemas["StepStatistics"];
export type Grid = Schemas["StepGrid"];

/** Of a playbook since a time, step by step. */
export const useStatistics = (path: string, since: number) =>
  useQuery({
    queryKey: ["statistics", path, since],
    queryFn: ({ signal }) => get<Statistics>("/api/statistics", { path, since, by: "step" }, signal),
    placeholderData: (old) => (old?.path === path ? old : undefined),
    refetchInterval: 10_000,
  });
