// Small controls that every screen shares.
import { Link } from "@tanstack/react-router";
import { type ButtonHTMLAttributes, type ReactNode, useEffect, useState } from "react";
import { Problem } from "../api/client";
import { ago, duration, exact, now, plain, shortId } from "../words/format";
import css from "./controls.module.css";
import { Sign } from "./Mark";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { kind?: "primary" | "plain" | "danger" | "quiet"; why?: string };

/** A button; with `why` it is disabled and says why. */
export function Button({ kind = "plain", why, className = "", ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={`${css.button} ${css[kind]} ${className}`}
      disabled={rest.disabled || Boolean(why)}
      title={why ?? rest.title}
    />
  );
}

export function useTick(ms = 1_000, active = true): number {
  const [at, setAt] = useState(now);
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => setAt(now()), ms);
    return () => clearInterval(timer);
  }, [ms, active]);
  return at;
}

export function Time({ at }: { at: number | null | undefined }) {
  const then = useTick(10_000);
  if (!at) return null;
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)} className={css.time}>
      {ago(at, Math.max(then, now()))}
    </time>
  );
}

const SOON_MS = 300_000;

/** A time that comes: it counts down, and stands out under five minutes. */
export function Countdown({ at }: { at: number }) {
  const then = useTick(1_000);
  const left = at - Math.max(then, now());
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)} className={`${css.time} ${left < SOON_MS ? css.soon : ""}`}>
      {left > 0 ? `in ${duration(left)}` : "now"}
    </time>
  );
}

/** How long something took, or takes until now. */
export function Lasted({ from, to }: { from: number; to: number | null | undefined }) {
  const then = useTick(1_000, !to);
  return <span className={css.time}>{duration((to ?? Math.max(then, from)) - from)}</span>;
}

export function Copy({ text, label = "Copy", children }: { text: string; label?: string; children?: ReactNode }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1_500);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <button
      type="button"
      className={css.copy}
      title={`${label}: ${text.length > 200 ? `${text.slice(0, 200)}…` : text}`}
      aria-label={children ? undefined : label}
      onClick={(event) => {
        event.preventDefault();
        event.stopPropagation();
        void navigator.clipboard?.writeText(text).then(() => setCopied(true));
      }}
    >
      {children ?? (copied ? "✓" : <CopySign />)}
      {children && copied ? <span role="status"> ✓ copied</span> : null}
    </button>
  );
}

const CopySign = () => (
  <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden className={css.sign}>
    <path d="M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z" />
  </svg>
);

export function ExecutionId({ id }: { id: string }) {
  return (
    <span className={css.id}>
      <Link to="/executions/$id" params={{ id }} title={id} className="mono">
        {shortId(id)}
      </Link>
      <Copy text={id} label="Copy the id" />
    </span>
  );
}

export function Command({ text }: { text: string }) {
  return (
    <div className={css.command}>
      <code>{text}</code>
      <Copy text={text} label="Copy the command" />
    </div>
  );
}

export function Kbd({ children }: { children: ReactNode }) {
  return <kbd className={css.kbd}>{children}</kbd>;
}

export function Trouble({ error, again }: { error: unknown; again?: () => void }) {
  const found = error instanceof Problem ? error : new Problem(0, "error", String(error), "", "");
  return (
    <div role="alert" className={css.trouble}>
      <Sign mark="cross" hue="red" />
      <div>
        <p className={css.detail}>{plain(found.detail || found.title)}</p>
        {found.fix ? <p className={css.fix}><Words text={found.fix} /></p> : null}
        <p className={css.row}>
          {again ? <Button onClick={again}>Try again</Button> : null}
          <Copy text={JSON.stringify({ status: found.status, body: found.body, page: location.href }, null, 1)} label="Copy report">
            Copy report
          </Copy>
        </p>
      </div>
    </div>
  );
}

/** Teaches what would be here: one sentence, one example, one button. */
export function Empty({ title, children, example, action }: { title: string; children?: ReactNode; example?: string; action?: ReactNode }) {
  return (
    <div className={css.empty}>
      <h2>{title}</h2>
      {children ? <p>{children}</p> : null}
      {example ? <Command text={example} /> : null}
      {action}
    </div>
  );
}

/** Nothing for a moment, then grey lines of the final size. */
export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <div className={css.loading} role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, at) => (
        <span key={at} className={css.skeleton} style={{ width: `${92 - ((at * 17) % 40)}%` }} />
      ))}
    </div>
  );
}

/** Words of the server; what is between backticks is code. */
export const Words = ({ text }: { text: string }) => <>{plain(text).split("`").map((part, place) => (place % 2 ? <code key={place}>{part}</code> : part))}</>;

export function Tags({ tags, onPick }: { tags: readonly string[]; onPick?: (tag: string) => void }) {
  if (tags.length === 0) return null;
  return (
    <span className={css.tags}>
      {tags.slice(0, 3).map((tag) =>
        onPick ? (
          <button type="button" key={tag} className={css.tag} title={`Only ${tag}`} aria-label={`Only ${tag}`} onClick={() => onPick(tag)}>
            {plain(tag)}
          </button>
        ) : (
          <span key={tag} className={css.tag} title={tag}>
            {plain(tag)}
          </span>
        ),
      )}
      {tags.length > 3 ? <span title={tags.slice(3).join(", ")}>+{tags.length - 3}</span> : null}
    </span>
  );
}

export function Field({ label, hint, children }: { label: string; hint?: string; children: ReactNode }) {
  return (
    <label className={css.field}>
      <span className={css.label}>{label}</span>
      {children}
      {hint ? <span className={css.hint}>{hint}</span> : null}
    </label>
  );
}

export function Facts({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <dl className={css.facts}>
      {rows
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function TabList<T extends string>({ tabs, value, onChange, label }: { tabs: { id: T; label: string; badge?: ReactNode; key?: string }[]; value: T; onChange: (id: T) => void; label: string }) {
  return (
    <div role="tablist" aria-label={label} className={css.tablist}>
      {tabs.map((tab, at) => (
        <button
          key={tab.id}
          type="button"
          role="tab"
          id={`tab-${tab.id}`}
          aria-selected={tab.id === value}
          tabIndex={tab.id === value ? 0 : -1}
          className={css.tab}
          onClick={() => onChange(tab.id)}
          onKeyDown={(event) => {
            const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
            if (!step) return;
            event.preventDefault();
            event.stopPropagation();
            const next = tabs[(at + step + tabs.length) % tabs.length];
            if (!next) return;
            onChange(next.id);
            document.getElementById(`tab-${next.id}`)?.focus();
          }}
        >
          {tab.key ? <span className={css.tabkey}>{tab.key}</span> : null}
          {tab.label}
          {tab.badge !== undefined && tab.badge !== null ? <span className={css.badge}>{tab.badge}</span> : null}
        </button>
      ))}
    </div>
  );
}
