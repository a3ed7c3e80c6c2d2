import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Problem } from "../../api/client";
import { register, type Stored, stored } from "../../api/language";
import css from "../../editor/editor.module.css";
import { Button, Loading, Time } from "../../parts/controls";
import { Dialog } from "../../parts/Dialog";
import { Diff } from "../../parts/Diff";
import { merge, unified } from "../../words/diff";
import { plain } from "../../words/format";

interface Props {
  path: string;
  text: string;
  /** The version that the text began with. */
  base: Stored | null;
  onClose: () => void;
  onRegistered: (path: string, version: number) => void;
  /** Go on with another text, which began with a newer version. */
  onBase: (base: Stored, text: string, said: string) => void;
}

/** Shows what will change before it is registered; a newer version in the catalog is merged first, never overwritten. */
export function Register({ path, text, base, onClose, onRegistered, onBase }: Props) {
  const latest = useQuery({ queryKey: ["editor", "latest", path], queryFn: () => stored(path), gcTime: 0, staleTime: 0, retry: false });
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  if (latest.isFetching || latest.error) {
    return (
      <Dialog open onClose={onClose} title="Register" error={latest.error}>
        {latest.isFetching ? <Loading rows={3} /> : null}
      </Dialog>
    );
  }
  const now = latest.data ?? null;
  if (now && now.version !== base?.version && now.content !== text) return <Conflict now={now} base={base} text={text} onClose={onClose} onBase={onBase} />;
  const isSame = now?.content === text;
  const next = (now?.version ?? 0) + 1;
  const act = async () => {
    setBusy(true);
    setError(null);
    try {
      const made = await register(text, path, now?.version ?? 0);
      onRegistered(made.path, made.version);
    } catch (found) {
      setBusy(false);
      if (found instanceof Problem && found.status === 409) void latest.refetch(); // another version came meanwhile
      else setError(found);
    }
  };
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={`Register ${plain(path)}`}
      error={error}
      command="noetl register FILE"
      actions={
        <Button kind="primary" disabled={busy} why={isSame ? `v${now?.version} has this text` : undefined} onClick={() => void act()}>
          Register v{next}
        </Button>
      }
    >
      <p>
        {isSame
          ? `The catalog already has this text, as v${now?.version}.`
          : now
            ? `What changes since v${now.version}. Executions that run keep their version; new ones take this.`
            : "The catalog has no playbook of this path yet. This becomes its first version."}
      </p>
      {now && !isSame ? <Changes label={`Changes since v${now.version}`} text={unified(now.content ?? "", text)} /> : null}
    </Dialog>
  );
}

const Changes = ({ label, text }: { label: string; text: string }) => (
  <div className={css.changes} role="region" aria-label={label} tabIndex={0}>
    <Diff text={text} />
  </div>
);

function Conflict({ now, base, text, onClose, onBase }: { now: Stored; base: Stored | null; text: string; onClose: () => void; onBase: Props["onBase"] }) {
  const theirs = now.content ?? "";
  const mergeBoth = () => {
    const { text: made, conflicts } = merge(base?.content ?? "", text, theirs, `v${now.version}`);
    onBase(now, made, conflicts ? `Merged v${now.version}: choose at ${conflicts} places between <<<<<<< and >>>>>>>.` : `Merged v${now.version} without a conflict.`);
  };
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={base ? `v${now.version} was registered after you began` : `${plain(now.path)} exists already`}
      actions={
        <>
          <Button kind="danger" onClick={() => onBase(now, theirs, `The text is that of v${now.version}. Undo brings yours back.`)}>Take v{now.version}</Button>
          {base ? (
            <Button kind="primary" onClick={mergeBoth}>Merge v{now.version} into mine</Button>
          ) : (
            <Button kind="primary" onClick={() => onBase(now, text, `Your text now follows v${now.version}. Register shows what changes.`)}>Make mine the next version</Button>
          )}
        </>
      }
    >
      <p>
        {base ? `Your text began with v${base.version}. ` : ""}Registered <Time at={now.registered_at} />. {base ? `This is what v${now.version} changed:` : "This is what your text would change:"}
      </p>
      <Changes label="What changed" text={base ? unified(base.content ?? "", theirs) : unified(theirs, text)} />
    </Dialog>
  );
}
