import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { get, type Schemas } from "../../api/client";
import type { Graph } from "../../graph/draw";
import { Copy, Loading, Trouble } from "../../parts/controls";
import { plain } from "../../words/format";
import css from "./Yaml.module.css";

type Version = Schemas["CatalogVersion"];
const AROUND = 200;

/** The text of the version that ran, as far as the catalog still has it. */
function useText(graph: Graph) {
  return useQuery({
    queryKey: ["text of", graph.path, graph.hash],
    staleTime: Infinity,
    queryFn: async ({ signal }) => {
      const { versions } = await get<Schemas["Versions"]>("/api/catalog/versions", { path: graph.path }, signal);
      const found = versions.find((one) => one.playbook === graph.hash);
      return found ? ((await get<Version>("/api/catalog/playbook", { path: graph.path, version: found.version }, signal)).content ?? "") : "";
    },
  });
}

/** The lines of the selected step among their neighbours; a click on another line selects its step. */
export function YamlTab({ graph, step, onStep }: { graph: Graph; step: string; onStep: (step: string) => void }) {
  const text = useText(graph);
  const here = useRef<HTMLSpanElement>(null);
  const steps = graph.nodes.filter((node) => node.line).sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  const first = steps.find((node) => node.name === step)?.line ?? 0;
  const stepOf = (line: number): string | undefined => steps.filter((node) => (node.line ?? 0) <= line).at(-1)?.name;
  useEffect(() => {
    void here.current?.scrollIntoView({ block: "nearest" });
  }, [first, text.data]);
  if (text.error) return <Trouble error={text.error} again={() => void text.refetch()} />;
  if (text.data === undefined) return <Loading rows={6} />;
  if (!text.data) return <p className={css.none}>The catalog does not have the text of this version: it ran from a file, or was deleted.</p>;
  const lines = text.data.replace(/\n$/, "").split("\n");
  const from = Math.max(0, first - 1 - AROUND);
  return (
    <div className={css.yaml}>
      <p className={css.none}>
        {first ? `Line ${first}. ` : ""}
        <Copy text={text.data} label="Copy the text">Copy the text</Copy>
      </p>
      <pre className={css.code}>
        {lines.slice(from, from + 2 * AROUND).map((line, at) => {
          const number = from + at + 1;
          const of = stepOf(number);
          return (
            <span key={number} ref={number === first ? here : undefined} data-line={number} data-of-step={of} className={of === step && number >= first ? css.here : undefined} onClick={() => of && of !== step && onStep(of)}>
              {plain(line) || " "}
            </span>
          );
        })}
      </pre>
    </div>
  );
}
