import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { get, type Schemas } from "../api/client";
import { useGraph } from "../api/executions";
import { Command, Copy, Empty, Loading, Time, Trouble } from "../parts/controls";
import { Diff } from "../parts/Diff";
import { Card, Lines } from "../parts/Page";
import { noetl } from "../words/command";
import { plain, plural } from "../words/format";
import css from "./Playbook.module.css";

type Version = Schemas["CatalogVersion"];
interface Change {
  path?: string;
  before?: unknown;
  after?: unknown;
}
const MOST = 200;
const short = (value: unknown): string => (value === undefined ? "" : plain(JSON.stringify(value).slice(0, 300)));

/** Versions of a playbook, and what changed between two of them: the text, and the places in it. */
export function Versions({ path, all, shown, since, onChoose }: { path: string; all: Version[]; shown: number; since?: number; onChoose: (version: number, since?: number) => void }) {
  const sorted = [...all].sort((a, b) => b.version - a.version);
  const before = sorted.filter((one) => one.version < shown);
  const other = all.find((one) => one.version === since && since !== shown)?.version ?? before[0]?.version;
  const diff = useQuery({
    queryKey: ["diff", path, other, shown],
    enabled: other !== undefined,
    staleTime: Infinity,
    queryFn: ({ signal }) => get<Schemas["Difference"]>("/api/catalog/diff", { path, version: shown, since: other }, signal),
  });
  const changes = (diff.data?.changes ?? []) as Change[];
  return (
    <div className={css.versions}>
      <ul className={css.versionlist} aria-label="Versions">
        {sorted.map((one) => (
          <li key={one.version}>
            <button type="button" aria-pressed={one.version === shown} onClick={() => onChoose(one.version)}>
              <strong>v{one.version}</strong>
              <span className={css.quiet}>
                <Time at={one.registered_at} />
              </span>
            </button>
          </li>
        ))}
      </ul>
      <div className={css.difference}>
        {other === undefined ? (
          <Empty title="The first version" example={noetl("register", `${path.split("/").at(-1)}.yaml`)}>
            Register a changed text, and this page shows what differs.
          </Empty>
        ) : (
          <>
            <div className={css.compared}>
              <span>What changed in v{shown} since</span>
              <select aria-label="Compared version" value={other} onChange={(event) => onChoose(shown, Number(event.target.value))}>
                {sorted
                  .filter((one) => one.version !== shown)
                  .map((one) => (
                    <option key={one.version} value={one.version}>
                      v{one.version}
                    </option>
                  ))}
              </select>
            </div>
            {diff.error ? <Trouble error={diff.error} again={() => void diff.refetch()} /> : null}
            {diff.data ? (
              <>
                <Card title="Changed places" note={changes.length > MOST ? `first ${MOST} of ${changes.length}` : plural(changes.length, "place")}>
                  <Lines
                    label="Changed places"
                    wraps
                    heads={["place", "before", "after"]}
                    rows={changes.slice(0, MOST).map((one, at) => ({ key: `${at}${one.path}`, cells: [<code key="p">{plain(one.path ?? "")}</code>, <code key="b">{short(one.before)}</code>, <code key="a">{short(one.after)}</code>] }))}
                    empty="They mean the same; only the text differs, or nothing."
                  />
                </Card>
                <Card title="Text">{diff.data.text ? <Diff text={diff.data.text} /> : <div className={css.pad}>The texts are equal.</div>}</Card>
              </>
            ) : diff.error ? null : (
              <Loading rows={8} />
            )}
          </>
        )}
        <Command text={noetl("playbooks", "show", path, "--version", shown)} />
      </div>
    </div>
  );
}

/** The text as it was registered, at the line of a step if one is chosen. */
export function Source({ path, version, playbook, step }: { path: string; version: number; playbook: string; step?: string }) {
  const here = useRef<HTMLSpanElement>(null);
  const text = useQuery({ queryKey: ["content", path, version], queryFn: ({ signal }) => get<Version>("/api/catalog/playbook", { path, version }, signal), staleTime: Infinity });
  const graph = useGraph(step ? playbook : undefined);
  const line = graph.data?.nodes.find((node) => node.name === step)?.line;
  useEffect(() => {
    // Newer browsers answer with a promise, which an effect must not return.
    void here.current?.scrollIntoView({ block: "center" });
  }, [line, text.data]);
  if (text.error) return <Trouble error={text.error} again={() => void text.refetch()} />;
  if (!text.data) return <Loading rows={12} />;
  const content = text.data.content ?? "";
  return (
    <div className={css.source} tabIndex={0} role="region" aria-label="YAML">
      <div className={css.sourcehead}>
        <Copy text={content} label="Copy the text">
          Copy
        </Copy>
      </div>
      <pre className={css.code}>
        {content
          .replace(/\n$/, "")
          .split("\n")
          .slice(0, 5_000)
          .map((one, at) => (
            <span key={at} data-line={at + 1} ref={at + 1 === line ? here : undefined} className={at + 1 === line ? css.here : undefined}>
              {plain(one) || " "}
            </span>
          ))}
      </pre>
    </div>
  );
}
