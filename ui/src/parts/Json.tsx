import { useMemo, useState } from "react";
import { plain } from "../words/format";
import { Button, Copy } from "./controls";
import css from "./Json.module.css";

const MOST = 200;
const isMap = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

/** Spell the way to a value as a template does. */
export const templatePath = (path: readonly (string | number)[]): string =>
  `{{ ${path.map((one, at) => (typeof one === "number" ? `[${one}]` : /^[A-Za-z_]\w*$/.test(one) ? (at ? `.${one}` : one) : `[${JSON.stringify(one)}]`)).join("")} }}`;

const SEARCHED = 12;
const MOST_COLUMNS = 12;

/** How many plain values there are, up to a bound: small ones need no search. */
function leaves(value: unknown, most: number): number {
  if (typeof value !== "object" || value === null) return 1;
  let found = 0;
  for (const one of Object.values(value)) if ((found += leaves(one, most - found)) >= most) break;
  return found;
}
/** Whether a text is in a name or a plain value, at any depth. */
function holds(name: string | number, value: unknown, text: string): boolean {
  if (String(name).toLowerCase().includes(text)) return true;
  if (typeof value !== "object" || value === null) return String(value).toLowerCase().includes(text);
  return Object.entries(value).some(([key, one]) => holds(key, one, text));
}
const isRows = (value: unknown): value is Record<string, unknown>[] => Array.isArray(value) && value.length > 1 && value.every((one) => isMap(one) && Object.keys(one).length > 0);

/** A value as a tree: parts open and close, every value and its path can be copied. A long one can be searched, a list of objects is also a table. */
export function Json({ value, path = [], depth = 0 }: { value: unknown; path?: (string | number)[]; depth?: number }) {
  const [find, setFind] = useState("");
  const [isTable, setTable] = useState(false);
  const rows = isRows(value) ? value : null;
  const isLong = useMemo(() => leaves(value, SEARCHED) >= SEARCHED, [value]);
  const text = find.trim().toLowerCase();
  return (
    <div className={css.tree}>
      {isLong || rows ? (
        <div className={css.tools}>
          {isLong ? <input type="search" aria-label="Find in the value" placeholder="Find" value={find} onChange={(event) => setFind(event.target.value)} /> : null}
          {rows ? <Button aria-pressed={isTable} onClick={() => setTable(!isTable)}>Table</Button> : null}
        </div>
      ) : null}
      {rows && isTable ? <Rows rows={rows} text={text} path={path} /> : text && !holds("", value, text) ? <p className={css.kind}>Nothing here has these letters.</p> : <Node key={text} value={value} path={path} depth={depth} name={null} text={text} />}
    </div>
  );
}

function Rows({ rows, text, path }: { rows: Record<string, unknown>[]; text: string; path: (string | number)[] }) {
  const [most, setMost] = useState(MOST);
  const names = [...new Set(rows.slice(0, MOST).flatMap((one) => Object.keys(one)))];
  const shown = rows.map((row, at) => ({ row, at })).filter(({ row }) => !text || holds("", row, text));
  const heads = names.slice(0, MOST_COLUMNS);
  return (
    <div className={css.wide} tabIndex={0} role="group" aria-label="Rows">
      <table className={css.rows}>
        <thead>
          <tr>
            <th scope="col">#</th>
            {heads.map((name) => <th key={name} scope="col">{plain(name)}</th>)}
          </tr>
        </thead>
        <tbody>
          {shown.slice(0, most).map(({ row, at }) => (
            <tr key={at}>
              <td>{path.length > 0 ? <Copy text={templatePath([...path, at])} label="Copy path">{at}</Copy> : at}</td>
              {heads.map((name) => <td key={name} title={words(row[name])}>{words(row[name])}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length > most ? <button type="button" className={css.more} onClick={() => setMost(most + MOST)}>first {most} of {shown.length} rows: show more</button> : null}
      {names.length > heads.length ? <p className={css.kind}>{names.length - heads.length} more columns are in the tree.</p> : null}
    </div>
  );
}
const words = (value: unknown): string => (value === undefined ? "" : typeof value === "string" ? plain(value) : plain(JSON.stringify(value)));

function Node({ value, path, depth, name, text }: { value: unknown; path: (string | number)[]; depth: number; name: string | number | null; text: string }) {
  const [open, setOpen] = useState(depth < 2 || text !== "");
  const [most, setMost] = useState(MOST);
  const entries: [string | number, unknown][] = Array.isArray(value) ? value.map((one, at) => [at, one]) : isMap(value) ? Object.entries(value) : [];
  const isNamed = text !== "" && name !== null && String(name).toLowerCase().includes(text);
  const shown = text && !isNamed ? entries.filter(([key, one]) => holds(key, one, text)) : entries;
  const isOpenable = entries.length > 0;
  const label = name === null ? null : <span className={css.name}>{typeof name === "string" ? plain(name) : name}: </span>;
  if (!isOpenable) {
    return (
      <div className={css.line}>
        <span className={css.gap} />
        {label}
        <Leaf value={value} />
        <Copies value={value} path={path} />
      </div>
    );
  }
  const kind = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <div>
      <div className={css.line}>
        <button type="button" className={css.fold} aria-expanded={open} aria-label={`${name ?? "value"} ${kind}`} onClick={() => setOpen(!open)}>
          {open ? "▾" : "▸"}
        </button>
        {label}
        <span className={css.kind}>{kind}</span>
        <Copies value={value} path={path} />
      </div>
      {open ? (
        <div className={css.inner}>
          {shown.slice(0, most).map(([key, one]) => (
            <Node key={key} value={one} path={[...path, key]} depth={depth + 1} name={key} text={isNamed ? "" : text} />
          ))}
          {shown.length > most ? (
            <button type="button" className={css.more} onClick={() => setMost(most + MOST)}>
              first {most} of {shown.length}: show more
            </button>
          ) : null}
        </div>
      ) : null}
    </div>
  );
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value === "string") return <span className={css.string}>{`"${plain(value)}"`}</span>;
  if (value === null || value === undefined) return <span className={css.null}>null</span>;
  return <span className={css.other}>{Array.isArray(value) ? "[]" : isMap(value) ? "{}" : String(value)}</span>;
}

function Copies({ value, path }: { value: unknown; path: (string | number)[] }) {
  return (
    <span className={css.copies}>
      <Copy text={typeof value === "string" ? value : JSON.stringify(value, null, 2)} label="Copy value" />
      {path.length > 0 ? (
        <Copy text={templatePath(path)} label="Copy path">
          <span className={css.path}>{"{{ }}"}</span>
        </Copy>
      ) : null}
    </span>
  );
}
