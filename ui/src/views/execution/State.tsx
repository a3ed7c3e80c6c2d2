import { type Execution, type Moment, useDiff } from "../../api/executions";
import { type Change, Changes } from "../../parts/Changes";
import { Copy, Loading, Trouble } from "../../parts/controls";
import { Json } from "../../parts/Json";
import { Mark } from "../../parts/Mark";
import { Term } from "../../parts/Term";
import { errorText, plain } from "../../words/format";
import css from "./State.module.css";

/** The exact state at the moment: ctx, what this event changed, tokens, and the checksum that `noetl replay` prints. */
export function StatePane({ id, moment, seq, vs }: { id: string; moment: Moment | undefined; seq: number; vs?: number }) {
  const [from, to] = vs !== undefined && vs > seq ? [seq, vs] : [vs, seq];
  const diff = useDiff(id, to, from);
  if (!moment) return <Loading rows={4} />;
  return (
    <div className={css.pane} tabIndex={0} role="region" aria-label="State">
      <section>
        <h3><Term word="ctx" /></h3>
        {Object.keys(moment.ctx).length ? <Json value={moment.ctx} path={["ctx"]} /> : <p className={css.none}>Empty at this moment.</p>}
        {moment.more?.ctx ? <p className={css.none}>{moment.more.ctx} more keys.</p> : null}
      </section>
      <section>
        {vs === undefined ? (
          <>
            <h3>Changed by event {moment.seq}</h3>
            <Changes changes={moment.changes} />
          </>
        ) : (
          <>
            <h3>Changed between event {from} and event {to}</h3>
            {diff.error ? <Trouble error={diff.error} /> : diff.data ? <Changes changes={(diff.data.changes ?? []) as Change[]} /> : <Loading rows={3} />}
          </>
        )}
      </section>
      <section>
        <h3><Term word="token">Tokens</Term></h3>
        {moment.tokens.length === 0 ? <p className={css.none}>No token stands at a step.</p> : null}
        <ul className={css.tokens}>
          {moment.tokens.map((one) => (
            <li key={one.token}>
              <Mark state={one.state === "ready" ? "pending" : one.state} size={14} /> <code>{plain(one.token)}</code> at <code>{plain(one.step)}</code>, {one.state}
            </li>
          ))}
        </ul>
        <h3 className={css.later}>Checksum</h3>
        <p>
          <code data-checksum>{moment.checksum}</code> <Copy text={`noetl replay ${id} --to ${moment.seq}`} label="Copy the command that prints it" />
        </p>
        <p className={css.none}>status {moment.status}, event {moment.seq}</p>
      </section>
    </div>
  );
}

export function ResultPane({ execution }: { execution: Execution }) {
  return (
    <div className={css.pane} tabIndex={0} role="region" aria-label="Result">
      <section>
        <h3>Result</h3>
        {execution.error ? <p className={css.error}>{errorText(execution.error)}</p> : null}
        {execution.result !== null && execution.result !== undefined ? <Json value={execution.result} /> : <p className={css.none}>{execution.ended_at ? "It has no result." : "It has not ended."}</p>}
        {execution.failures?.length ? (
          <>
            <h3 className={css.later}>Failures</h3>
            <Json value={execution.failures} />
          </>
        ) : null}
      </section>
      <section>
        <h3><Term word="workload">Workload</Term></h3>
        {Object.keys(execution.workload ?? {}).length ? <Json value={execution.workload} path={["workload"]} /> : <p className={css.none}>Empty.</p>}
      </section>
      <section>
        <h3>Steps: number of <Term word="step-run">step-runs</Term> done, failed, skipped</h3>
        <Json value={execution.steps} />
      </section>
    </div>
  );
}
