import { useState } from "react";
import { plain } from "../words/format";
import { Copy } from "./controls";
import css from "./Json.module.css";

const MOST = 200;
const isMap = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

/** Spell the way to a value as a template does. */
export const templatePath = (path: readonly (string | number)[]): string =>
  `{{ ${path.map((one, at) => (typeof one === "number" ? `[${one}]` : /^[A-Za-z_]\w*$/.test(one) ? (at ? `.${one}` : one) : `[${JSON.stringify(one)}]`)).join("")} }}`;

/** A value as a tree: parts open and close, every value and its path can be copied. */
export function Json({ value, path = [], depth = 0 }: { value: unknown; path?: (string | number)[]; depth?: number }) {
  return (
    <div className={css.tree}>
      <Node value={value} path={path} depth={depth} name={null} />
    </div>
  );
}

function Node({ value, path, depth, name }: { value: unknown; path: (string | number)[]; depth: number; name: string | number | null }) {
  const [open, setOpen] = useState(depth < 2);
  const [most, setMost] = useState(MOST);
  const entries: [string | number, unknown][] = Array.isArray(value) ? value.map((one, at) => [at, one]) : isMap(value) ? Object.entries(value) : [];
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
          {entries.slice(0, most).map(([key, one]) => (
            <Node key={key} value={one} path={[...path, key]} depth={depth + 1} name={key} />
          ))}
          {entries.length > most ? (
            <button type="button" className={css.more} onClick={() => setMost(most + MOST)}>
              first {most} of {entries.length}: show more
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
