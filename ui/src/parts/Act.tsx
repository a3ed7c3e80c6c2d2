import { type ReactNode, useState } from "react";
import { Button } from "./controls";
import { Dialog } from "./Dialog";

interface Props<T> {
  title: string;
  /** The word on the button that acts. */
  label: string;
  kind?: "primary" | "danger";
  command?: string;
  /** Why it cannot act yet. */
  why?: string;
  wide?: boolean;
  run: () => Promise<T>;
  onClose: () => void;
  onDone?: (answer: T) => void;
  children: ReactNode;
}

/** Says what an action will do, shows it as a command, does it once, and shows what went wrong. */
export function Act<T>({ title, label, kind = "primary", command, why, wide, run, onClose, onDone, children }: Props<T>) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const act = async () => {
    setBusy(true);
    setError(null);
    try {
      const answer = await run();
      onClose();
      onDone?.(answer);
    } catch (found) {
      setError(found);
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      command={command}
      error={error}
      wide={wide}
      actions={
        <Button kind={kind} why={why} disabled={busy} onClick={() => void act()}>
          {busy ? `${label}…` : label}
        </Button>
      }
    >
      {children}
    </Dialog>
  );
}
