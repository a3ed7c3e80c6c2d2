// The text of a playbook with its graph beside it, and what is wrong with it below.
import type { EditorView } from "@codemirror/view";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { Problem } from "../api/client";
import { type Diagnosed, language, type Stored, stored } from "../api/language";
import { useNeeds } from "../api/session";
import { stepAt, stepsOf, useCheck } from "../editor/check";
import { drafts } from "../editor/drafts";
import css from "../editor/editor.module.css";
import { EXAMPLE } from "../editor/example";
import { applyEdits, format, jump } from "../editor/language";
import { TextView } from "../editor/view";
import { GraphView } from "../graph/view";
import { useDelayed, useIsPhone } from "../moments/use";
import { Button, Field, Loading, TabList, Trouble, Words } from "../parts/controls";
import { Dialog } from "../parts/Dialog";
import { Diff } from "../parts/Diff";
import { useKeys } from "../parts/keys";
import { Sign } from "../parts/Mark";
import { unified } from "../words/diff";
import { middle, plain, plural } from "../words/format";
import { Register } from "./editor/Register";
import { Tried, TriedGraph, Try } from "./editor/Try";

interface Begun {
  text: string;
  /** The version that the text began with. */
  base: Stored | null;
  /** What the text of a new playbook begins with. */
  fresh: string;
  latest: number;
}

async function begin(path: string): Promise<Begun> {
  const draft = drafts.get(path);
  const latest = path ? await stored(path) : null;
  const version = latest?.version ?? 0;
  const named = /^[\w./-]+$/.test(path) ? path : JSON.stringify(path);
  const fresh = path ? EXAMPLE.replace("examples/my_first", () => named) : EXAMPLE;
  if (!draft || draft.text === latest?.content) return { text: latest?.content ?? fresh, base: latest, fresh, latest: version };
  const base = draft.version === version ? latest : draft.version ? await stored(path, draft.version) : null;
  return { text: draft.text, base, fresh, latest: version };
}

export function EditorPage() {
  const { _splat: path = "" } = useParams({ strict: false }) as { _splat?: string };
  const begun = useQuery({ queryKey: ["editor", "begin", path], queryFn: () => begin(path), staleTime: Infinity, gcTime: 0, refetchOnWindowFocus: false, refetchOnReconnect: false });
  useEffect(() => {
    document.title = `${path || "New playbook"} · edit · NoETL`;
  }, [path]);
  if (begun.error) return <Trouble error={begun.error} again={() => void begun.refetch()} />;
  if (!begun.data) return <Loading rows={12} />;
  return <Desk key={path} path={path} begun={begun.data} />;
}

type Pane = "problems" | "trial" | "diff";
type Open = "register" | "try" | null;

function Desk({ path, begun }: { path: string; begun: Begun }) {
  const search = useSearch({ strict: false }) as { step?: string; line?: number };
  const navigate = useNavigate();
  const client = useQueryClient();
  const needs = useNeeds();
  const isPhone = useIsPhone();
  const view = useRef<EditorView | null>(null);
  const [text, setText] = useState(begun.text);
  const [base, setBase] = useState(begun.base);
  const [cursor, setCursor] = useState<{ pos: number; line: number } | null>(null);
  const [pane, setPane] = useState<Pane>("problems");
  const [open, setOpen] = useState<Open>(null);
  const [renaming, setRenaming] = useState<{ pos: number; name: string } | null>(null);
  const [trial, setTrial] = useState<{ id: string; text: string } | null>(null);
  const [said, setSaid] = useState("");
  const check = useCheck(text);
  const isChecked = check.text === text;
  const { diagnostics, symbols, graph } = check;
  const errors = diagnostics.filter((one) => one.severity === "error").length;
  const target = graph?.path || path;
  const before = base?.content ?? "";
  const isUnsaved = text !== (base ? before : begun.fresh);
  const cannotRun = needs("operator") ?? (isUnsaved || !base ? needs("editor") && "Text that is not registered needs editor" : undefined);
  const isBehind = begun.latest > (base?.version ?? 0);

  const rested = useDelayed(text, 300);
  const [isKept, setKept] = useState(true);
  useEffect(() => {
    if (rested === (base ? base.content : begun.fresh)) drafts.drop(path);
    else setKept(drafts.set(path, { text: rested, version: base?.version ?? 0 }));
  }, [rested, base, path, begun.fresh]);

  const step = cursor ? stepAt(symbols, cursor.pos) : search.step;
  const place = useDelayed(cursor ? `${cursor.line} ${step ?? ""}` : "", 400);
  useEffect(() => {
    if (!place) return;
    const [line, ...rest] = place.split(" ");
    void navigate({ to: ".", search: { line: Number(line), step: rest.join(" ") || undefined }, replace: true } as never);
  }, [place, navigate]);

  // The address says where to begin: a line at once, a step when the outline is known. Later it only follows the cursor.
  const start = useRef<typeof search | null>(search);
  useEffect(() => {
    const here = view.current;
    const to = start.current;
    if (!here || !to) return;
    const named = stepsOf(symbols).find((one) => one.name === to.step);
    if (to.line !== undefined) jump(here, here.state.doc.line(Math.max(1, Math.min(to.line, here.state.doc.lines))).from);
    else if (named) jump(here, named.name_start);
    else if (check.text === null && to.step !== undefined) return;
    start.current = null;
  }, [symbols, check.text]);

  const rewrite = (fresh: string) => {
    const here = view.current;
    here?.dispatch({ changes: { from: 0, to: here.state.doc.length, insert: fresh }, userEvent: "input" });
  };
  const goTo = (one: Diagnosed) => view.current && jump(view.current, one.start);
  const toStep = (name: string) => {
    const here = view.current;
    const found = stepsOf(symbols).find((one) => one.name === name);
    const node = graph?.nodes.find((one) => one.name === name);
    if (!here) return;
    if (found) jump(here, found.name_start);
    else if (node?.line) jump(here, here.state.doc.line(Math.min(node.line, here.state.doc.lines)).from);
  };
  const told = (error: unknown) => setSaid(error instanceof Problem ? `${error.detail || error.title} ${error.fix}` : String(error));
  const mend = (one: Diagnosed | undefined, at = 0) => {
    const fix = one?.fixes[at];
    if (view.current && fix && isChecked) applyEdits(view.current, fix.edits, "input.fix");
  };
  const isHere = (one: Diagnosed, at = cursor?.pos ?? -1) => one.start <= at && at <= one.end;
  const commands = {
    register: () => {
      const first = diagnostics.find((one) => one.severity === "error");
      if (needs("editor")) setSaid(`Register ${needs("editor")}.`);
      else if (first) {
        setPane("problems");
        setSaid(`Not registered: ${plural(errors, "error")}.`);
        goTo(first);
      } else if (isChecked) setOpen("register");
    },
    run: () => (cannotRun ? setSaid(`Not run: ${cannotRun}.`) : setOpen("try")),
    rename: (pos: number) => {
      language
        .rename(text, pos)
        .then((found) => (found.target && found.name !== null ? setRenaming({ pos, name: found.name }) : setSaid("Nothing here can be renamed. Put the cursor on a step, a task or an iterator.")))
        .catch(told);
    },
    // Where the cursor is, not where it was when this was drawn: the key before may have moved it.
    mend: () => mend(diagnostics.find((one) => isHere(one, view.current?.state.selection.main.head))),
    format: () => view.current && void format(view.current).catch(told),
  };
  useKeys({ "Mod+s": commands.register, "Mod+Enter": commands.run });

  const notes = useMemo(() => {
    const found: Record<string, string> = {};
    for (const one of diagnostics) {
      const name = one.severity === "error" ? stepAt(symbols, one.start) : undefined;
      if (name) found[name] ??= `${one.code} ${one.message}`;
    }
    for (const node of graph?.nodes ?? []) if (!node.known) found[node.name] ??= "not a step";
    return found;
  }, [diagnostics, symbols, graph]);
  const changes = useMemo(() => (pane === "diff" ? unified(before, text) : ""), [pane, before, text]);

  const registered = (where: string, version: number) => {
    drafts.drop(path);
    setOpen(null);
    setSaid(`Registered ${where} v${version}.`);
    void client.invalidateQueries({ predicate: (query) => query.queryKey[0] !== "editor" });
    if (where === path) setBase({ path, version, playbook: "", registered_at: 0, content: text });
    else void navigate({ to: "/edit/$", params: { _splat: where }, search: { line: cursor?.line } } as never);
  };
  const why = errors ? `${plural(errors, "error")} first` : isChecked ? undefined : "being checked";
  return (
    <div className={css.page}>
      <header className={css.head}>
        <h1 className={css.title} title={path}>
          {path ? <Link to="/playbooks/$" params={{ _splat: path }}>{plain(middle(path, 60))}</Link> : "New playbook"}
        </h1>
        <span className={css.note}>{base ? `${isUnsaved ? "draft on " : ""}v${base.version}${isUnsaved ? " ●" : ""}` : "draft, not registered"}</span>
        <span className={errors ? css.bad : css.note} role="status" aria-label="Check">{check.error ? "not checked" : !isChecked ? "checking…" : diagnostics.length === 0 ? "no problems" : [errors ? plural(errors, "error") : "", diagnostics.length - errors ? plural(diagnostics.length - errors, "warning") : ""].filter(Boolean).join(", ")}</span>
        <span className={css.note} role="status" aria-label="Message">{plain(said)}</span>
        <span className={css.fill} />
        {isUnsaved && base ? <Button kind="quiet" onClick={() => rewrite(before)} title="Undo brings your text back">Discard the draft</Button> : null}
        <Button onClick={commands.format} title="Format (Shift Alt F)">Format</Button>
        <Button onClick={commands.run} title="Run this text (Ctrl Enter)" why={cannotRun ?? (errors ? why : undefined)}>Run…</Button>
        <Button kind="primary" onClick={commands.register} title="Register (Ctrl S)" why={needs("editor") ?? why}>Register…</Button>
      </header>
      {isBehind && base?.version !== begun.latest ? (
        <p className={css.banner} role="status">
          v{begun.latest} was registered after you began this draft. <Button onClick={() => setOpen("register")}>Compare and merge…</Button>
        </p>
      ) : null}
      {isKept ? null : <p className={css.banner} role="alert">The browser has no room for the draft. Register it, or copy it before you leave.</p>}
      {check.error ? <Trouble error={check.error} /> : null}
      <div className={css.middle}>
        <TextView
          text={begun.text}
          diagnostics={diagnostics}
          commands={commands}
          onReady={(made) => {
            view.current = made;
          }}
          onText={setText}
          onCursor={(pos, line) => {
            start.current = null;
            setCursor({ pos, line });
          }}
        />
        {isPhone ? null : (
          <div className={css.side}>
            {graph ? (
              <div className={`${css.old} ${check.broken === null ? "" : css.isold}`} data-old={check.broken !== null}>
                {trial ? <TriedGraph id={trial.id} graph={graph} step={step} onStep={toStep} /> : <GraphView graph={graph} track={null} seq={0} step={step} notes={notes} onStep={toStep} />}
              </div>
            ) : (
              <p className={css.quiet}>{check.text === null ? "" : "The graph appears here when the text has a step."}</p>
            )}
            {graph && check.broken !== null ? <p className={css.stale} role="status">line {check.broken} cannot be read; this is the last graph</p> : null}
          </div>
        )}
      </div>
      <div className={css.bottom}>
        <TabList
          label="Panes"
          value={pane}
          onChange={setPane}
          tabs={[{ id: "problems", label: "Problems", badge: diagnostics.length || undefined }, { id: "trial", label: "Result of the run" }, ...(base ? [{ id: "diff" as const, label: `Diff to v${base.version}` }] : [])]}
        />
        <div className={css.pane} role="tabpanel" aria-labelledby={`tab-${pane}`} tabIndex={0}>
          {pane === "problems" ? (
            <Problems list={diagnostics} isRead={check.text !== null} isHere={isHere} onGo={goTo} onFix={mend} />
          ) : pane === "trial" ? (
            trial ? <Tried key={trial.id} id={trial.id} isOld={trial.text !== text} onClear={() => setTrial(null)} /> : <p className={css.quiet}>Ctrl Enter runs this text without registering it. Its result appears here.</p>
          ) : changes ? (
            <Diff text={changes} />
          ) : (
            <p className={css.quiet}>The text is that of v{base?.version}.</p>
          )}
        </div>
      </div>
      {open === "register" ? (
        <Register
          path={target}
          text={text}
          base={base && base.path === target ? base : null}
          onClose={() => setOpen(null)}
          onRegistered={registered}
          onBase={(next, fresh, words) => {
            setBase(next);
            if (fresh !== text) rewrite(fresh);
            setSaid(words);
            setOpen(null);
          }}
        />
      ) : null}
      {open === "try" ? (
        <Try
          text={text}
          path={target}
          steps={stepsOf(symbols).map((one) => one.name)}
          step={step}
          onClose={() => setOpen(null)}
          onStarted={(id) => {
            setTrial({ id, text });
            setPane("trial");
            setOpen(null);
          }}
        />
      ) : null}
      {renaming ? (
        <Rename
          name={renaming.name}
          onClose={() => setRenaming(null)}
          onName={async (name) => {
            const found = await language.rename(text, renaming.pos, name);
            if (view.current) applyEdits(view.current, found.edits, "rename");
            setSaid(`Renamed at ${plural(found.edits.length, "place")}.`);
            setRenaming(null);
            view.current?.focus();
          }}
        />
      ) : null}
    </div>
  );
}

const MOST = 200;
interface ProblemsProps {
  list: readonly Diagnosed[];
  isRead: boolean;
  isHere: (one: Diagnosed) => boolean;
  onGo: (one: Diagnosed) => void;
  onFix: (one: Diagnosed, at: number) => void;
}

function Problems({ list, isRead, isHere, onGo, onFix }: ProblemsProps) {
  if (list.length === 0) return <p className={css.quiet}>{isRead ? "No problems. Ctrl Enter runs this text, Ctrl S registers it." : ""}</p>;
  return (
    <ul className={css.problems} aria-label="Problems">
      {list.slice(0, MOST).map((one, at) => (
        <li key={at} className={css.problem} aria-current={isHere(one)}>
          <button type="button" className={css.place} title={`${one.why} ${one.fix}`} onClick={() => onGo(one)}>
            <Sign mark={one.severity === "error" ? "cross" : "hourglass"} hue={one.severity === "error" ? "red" : "amber"} label={one.severity} size={14} />
            <code>{one.line}:{one.column} {one.code}</code>
            <span><Words text={one.message} /> <span className={css.note}><Words text={one.fix} /></span></span>
          </button>
          {one.fixes.map((fix, index) => (
            <Button key={fix.title} onClick={() => onFix(one, index)}>{plain(fix.title)}</Button>
          ))}
        </li>
      ))}
      {list.length > MOST ? <li className={css.quiet}>first {MOST} of {list.length}</li> : null}
    </ul>
  );
}

function Rename({ name, onClose, onName }: { name: string; onClose: () => void; onName: (name: string) => Promise<void> }) {
  const [fresh, setFresh] = useState(name);
  const [error, setError] = useState<unknown>(null);
  const act = () => void onName(fresh).catch(setError);
  return (
    <Dialog open onClose={onClose} title={`Rename ${plain(name)}`} error={error} actions={<Button kind="primary" disabled={!fresh || fresh === name} onClick={act}>Rename</Button>}>
      <Field label="New name" hint="Everywhere the text names it.">
        <input value={fresh} onChange={(event) => setFresh(event.target.value)} onKeyDown={(event) => event.key === "Enter" && fresh && fresh !== name && act()} />
      </Field>
    </Dialog>
  );
}
