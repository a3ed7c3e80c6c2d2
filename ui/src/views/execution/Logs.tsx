import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { useLogs } from "../../api/logs";
import { Button, Command, Empty, Loading, Trouble } from "../../parts/controls";
import { Filter } from "../../parts/Page";
import type { ExecutionSearch } from "../../routes";
import { noetl } from "../../words/command";
import { clock, count, plain } from "../../words/format";
import { ansi, LEVELS, type LogLine, rank, withoutColours } from "../../words/logs";
import css from "./Logs.module.css";

const AT_END_PX = 24;

interface ListProps {
  lines: LogLine[];
  seq: number;
  isFollowing: boolean;
  /** Counts up when the first error is asked for. */
  jump: number;
  foot?: ReactNode;
}

/** Lines as virtual rows; it follows new ones only while it is scrolled to its end. */
function Lines({ lines, seq, isFollowing, jump, foot }: ListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(isFollowing);
  const [marked, setMarked] = useState(-1);
  const virtual = useVirtualizer({ count: lines.length, getScrollElement: () => scroller.current, estimateSize: () => 20, overscan: 20 });
  useEffect(() => {
    if (isAtEnd.current && lines.length > 0) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [lines.length, virtual]);
  const first = lines.findIndex((one) => rank(one.level) >= 3);
  useEffect(() => {
    if (!jump || first < 0) return;
    isAtEnd.current = false;
    setMarked(first);
    virtual.scrollToIndex(first, { align: "center" });
  }, [jump, first, virtual]);
  return (
    <div
      className={css.scroller}
      ref={scroller}
      tabIndex={0}
      role="log"
      aria-label="Lines"
      aria-live="off"
      onScroll={(event) => {
        const box = event.currentTarget;
        isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < AT_END_PX;
      }}
    >
      <div className={css.body} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const line = lines[item.index] as LogLine;
          return (
            <div
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              data-of-step={line.step}
              data-level={line.level}
              aria-current={item.index === marked ? "true" : undefined}
              className={`${css.row} ${line.seq > seq ? css.later : ""} ${rank(line.level) >= 3 ? css.bad : rank(line.level) === 2 ? css.warn : ""}`}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <Link to="." search={((old: ExecutionSearch) => ({ ...old, at: line.seq })) as never} replace className={css.time} title={`Event ${line.seq}: show this moment`}>
                {clock(line.at, true)}
              </Link>
              <span className={css.level}>{line.level === "info" ? "" : plain(line.level)}</span>
              <Link to="." search={((old: ExecutionSearch) => ({ ...old, step: line.step, run: line.run, item: line.item ?? undefined, arc: undefined, tab: "attempts" })) as never} className={css.place} title={`${plain(line.run)}${line.item === null ? "" : `, item ${line.item}`}, task ${plain(line.task)}, attempt ${line.attempt ?? 1}`}>
                {plain(line.run)}
                {line.item === null ? "" : `[${line.item}]`}
                {(line.attempt ?? 1) > 1 ? ` ⟳${line.attempt}` : ""}
              </Link>
              <span className={css.text}>
                {ansi(line.text).map((part, at) => (
                  <span key={at} className={`${part.hue ? css[part.hue] : ""} ${part.bold ? css.bold : ""}`}>{part.text}</span>
                ))}
              </span>
            </div>
          );
        })}
      </div>
      {foot}
    </div>
  );
}

interface Props {
  id: string;
  head: number;
  seq: number;
  isOpen: boolean;
  search: ExecutionSearch;
  jump: number;
  onSearch: (next: Partial<ExecutionSearch>, replace?: boolean) => void;
}

/** What the tasks of an execution wrote, and their errors: all lines so far, then live. */
export function LogsPane({ id, head, seq, isOpen, search, jump, onSearch }: Props) {
  const { lines, isWhole, error, isCut, more } = useLogs(id, head, { step: search.of });
  const find = (search.find ?? "").toLowerCase();
  const least = search.level ? rank(search.level) : 0;
  const shown = useMemo(
    () => lines.filter((one) => rank(one.level) >= least && (search.attempt === undefined || (one.attempt ?? 1) === search.attempt) && (!find || withoutColours(one.text).toLowerCase().includes(find))),
    [lines, least, search.attempt, find],
  );
  const steps = [...new Set([...lines.map((one) => one.step), ...(search.of ? [search.of] : [])])].sort();
  const attempts = [...new Set([...lines.map((one) => one.attempt ?? 1), ...(search.attempt ? [search.attempt] : [])])].sort((a, b) => a - b);
  const isFiltered = Boolean(search.of || search.find || search.level || search.attempt);
  const [own, setOwn] = useState(0);
  return (
    <div className={css.pane}>
      <div className={css.head} role="group" aria-label="Filter of the lines">
        <Filter text={search.find ?? ""} label="Find in the lines" hint="Find" onChange={(text) => onSearch({ find: text || undefined }, true)} />
        <select aria-label="Level" value={search.level ?? ""} onChange={(event) => onSearch({ level: (event.target.value || undefined) as ExecutionSearch["level"] }, true)}>
          <option value="">all levels</option>
          {LEVELS.slice(1).map((one) => <option key={one} value={one}>{one === "error" ? "errors" : `${one} and above`}</option>)}
        </select>
        <select aria-label="Step" value={search.of ?? ""} onChange={(event) => onSearch({ of: event.target.value || undefined }, true)}>
          <option value="">all steps</option>
          {steps.map((one) => <option key={one} value={one}>{plain(one)}</option>)}
        </select>
        {attempts.length > 1 ? (
          <select aria-label="Attempt" value={search.attempt ?? ""} onChange={(event) => onSearch({ attempt: event.target.value ? Number(event.target.value) : undefined }, true)}>
            <option value="">all attempts</option>
            {attempts.map((one) => <option key={one} value={one}>attempt {one}</option>)}
          </select>
        ) : null}
        <Button onClick={() => setOwn(own + 1)} title="Jump to the first error (e)" why={shown.some((one) => rank(one.level) >= 3) ? undefined : "No error in these lines"}>First error</Button>
        <span className={css.fill} />
        <span className={css.note} role="status">
          {isFiltered ? `${count(shown.length)} of ` : ""}
          {isCut ? "the first " : ""}
          {count(lines.length)} {lines.length === 1 ? "line" : "lines"}
          {isWhole || isCut ? "" : ", reading…"}
        </span>
      </div>
      {error ? <Trouble error={error} /> : null}
      {lines.length === 0 && !isWhole && !error ? <Loading rows={4} /> : null}
      {lines.length === 0 && isWhole ? (
        <Empty title={search.of ? "This step has written nothing" : "No task has written a line"} example={search.of ? undefined : noetl("logs", id, "--follow")}>
          What a task prints or logs appears here while it runs.
        </Empty>
      ) : lines.length > 0 && shown.length === 0 ? <Empty title="No line fits">Take words out of the filter, or choose another level.</Empty> : null}
      {shown.length > 0 ? <Lines lines={shown} seq={seq} isFollowing={isOpen && search.at === undefined} jump={jump + own} foot={isCut ? <p className={css.note}>The first {count(lines.length)} lines. <Button onClick={more}>Read on</Button></p> : undefined} /> : null}
    </div>
  );
}

/** The lines of one step-run, or of one item. */
export function RunLogs({ id, run, item, head, seq, isOpen }: { id: string; run: string; item?: number; head: number; seq: number; isOpen: boolean }) {
  const { lines, isWhole, error, isCut, more } = useLogs(id, head, { run, iteration: item });
  if (error) return <Trouble error={error} />;
  if (lines.length === 0) return isWhole ? <p className={css.note}>It has written nothing.</p> : <Loading rows={4} />;
  return (
    <div className={css.inpanel}>
      <Lines lines={lines} seq={seq} isFollowing={isOpen} jump={0} foot={isCut ? <Button onClick={more}>Read on</Button> : undefined} />
      <Command text={noetl("logs", id, "--step", run.replace(/#\d+$/, ""))} />
    </div>
  );
}
