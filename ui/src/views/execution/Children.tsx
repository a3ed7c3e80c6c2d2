import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { useEvents } from "../../api/executions";
import { useList } from "../../api/lists";
import { Copy, Empty, Lasted, Loading, Time, Trouble } from "../../parts/controls";
import { Mark } from "../../parts/Mark";
import { type Column, Table } from "../../parts/Table";
import type { ExecutionSearch } from "../../routes";
import { errorText, middle, plain, shortId } from "../../words/format";
import { hasEnded } from "../../words/states";
import css from "./Items.module.css";

type Row = Schemas["ExecutionRow"];
interface Props {
  id: string;
  /** The moment, if it is not live: the way back from a child keeps it. */
  at: number | undefined;
  isOpen: boolean;
  onStep: (step: string, more: Partial<ExecutionSearch>) => void;
  onOpen: (child: string) => void;
}

/** Executions that this one started, each with the step-run that waits for it. */
export function ChildrenPane({ id, at, isOpen, onStep, onOpen }: Props) {
  const { rows, more, isPending, error, again } = useList<Row>("/api/executions", "executions", { parent: id, limit: 100 }, { every: isOpen ? 2_000 : 60_000 });
  const started = useEvents(id, { type: "child.started", limit: 1_000 }, rows.length > 0, rows.length);
  const runs = useMemo(() => new Map((started.data?.events ?? []).map((event) => [String(event.payload.child_id ?? event.entity_id), event])), [started.data]);
  const columns: Column<Row>[] = [
    { id: "mark", head: "Status", width: "104px", cell: (row) => <Mark state={row.status} word size={14} /> },
    {
      id: "id",
      head: "Execution",
      width: "96px",
      cell: (row) => (
        <>
          <Link to="/executions/$id" params={{ id: row.execution_id }} search={{ up: at }} title={row.execution_id} className="mono">{shortId(row.execution_id)}</Link>
          <Copy text={row.execution_id} label="Copy the id" />
        </>
      ),
    },
    { id: "path", head: "Playbook", width: "minmax(140px, 2fr)", cell: (row) => <span title={row.path}>{plain(middle(row.path ?? ""))}</span> },
    {
      id: "run",
      head: "Step-run",
      width: "minmax(100px, 1fr)",
      cell: (row) => {
        const event = runs.get(row.execution_id);
        if (!event) return null;
        const run = event.step_run_id ?? "";
        return (
          <button type="button" className={css.link} onClick={() => onStep(event.step ?? run.replace(/#\d+$/, ""), { run, item: event.iteration ?? undefined })}>
            {plain(run)}
            {event.iteration === null || event.iteration === undefined ? "" : `[${event.iteration}]`}
          </button>
        );
      },
    },
    { id: "started", head: "Started", isTime: true, width: "104px", cell: (row) => <Time at={row.started_at} /> },
    { id: "lasted", head: "Duration", width: "96px", right: true, cell: (row) => <Lasted from={row.started_at ?? 0} to={hasEnded(row.status) ? (row.ended_at ?? row.started_at) : null} /> },
    { id: "why", head: "Error", width: "minmax(100px, 2fr)", cell: (row) => <span className={css.error} title={errorText(row.error)}>{errorText(row.error)}</span> },
  ];
  if (error) return <Trouble error={error} again={again} />;
  if (isPending) return <Loading rows={3} />;
  return (
    <Table
      label="Children"
      rows={rows}
      columns={columns}
      rowKey={(row) => row.execution_id}
      onOpen={(row) => onOpen(row.execution_id)}
      onEnd={more}
      empty={<Empty title="It has started no other execution">A task of the kind <code>playbook</code> runs another playbook as a child and waits for its result.</Empty>}
    />
  );
}
