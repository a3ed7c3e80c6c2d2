import { useState } from "react";
import { Act } from "../../parts/Act";
import { Button, Field } from "../../parts/controls";
import { plain } from "../../words/format";
import { dropView, savedViews, saveView, type View } from "../../words/views";
import css from "../Executions.module.css";

interface Props {
  q: string;
  /** The name in the address; its view may be another browser's. */
  view?: string;
  onOpen: (one: { q: string; view?: string }) => void;
}

/** Filters with a name: kept in this browser, shared by their address, which holds the filter too. */
export function Views({ q, view, onOpen }: Props) {
  const [views, setViews] = useState(savedViews);
  const [name, setName] = useState<string | null>(null);
  const here = views.find((one) => one.name === view);
  const isSaved = here?.q === q;
  const isKnown = views.some((one) => one.name === name?.trim());
  const save = () => {
    const made: View = { name: (name ?? "").trim(), q };
    setViews(saveView(views, made));
    onOpen({ q, view: made.name });
    return Promise.resolve();
  };
  return (
    <>
      {views.length > 0 ? (
        <span className={css.views} role="group" aria-label="Saved views">
          {views.map((one) => (
            <span key={one.name} className={css.view}>
              <button type="button" className={css.chip} aria-pressed={one.name === view && isSaved} title={one.q || "all executions"} onClick={() => onOpen({ q: one.q, view: one.name })}>
                {plain(one.name)}
                {one.name === view && !isSaved ? " (changed)" : ""}
              </button>
              {one.name === view ? (
                <Button kind="quiet" aria-label={`Forget the view ${one.name}`} title="Forget this view; nothing else changes" onClick={() => { setViews(dropView(views, one.name)); onOpen({ q }); }}>
                  ✕
                </Button>
              ) : null}
            </span>
          ))}
        </span>
      ) : null}
      <Button why={q ? (isSaved ? "This view is saved" : undefined) : "Write a filter first"} onClick={() => setName(view ?? "")}>
        Save view
      </Button>
      {name !== null ? (
        <Act title="Save the view" label={isKnown ? "Replace" : "Save"} why={name.trim() ? undefined : "Write a name first"} run={save} onClose={() => setName(null)}>
          <p>
            Keeps <code>{plain(q)}</code> in this browser. Others can open its address: it holds the filter.
          </p>
          <Field label="Name" hint={isKnown ? "This name has a view; it gets the new filter." : undefined}>
            <input value={name} autoFocus maxLength={60} onChange={(event) => setName(event.target.value)} />
          </Field>
        </Act>
      ) : null}
    </>
  );
}
