import { Dialog as Base } from "@base-ui/react/dialog";
import type { ReactNode } from "react";
import { Button, Command, Trouble } from "./controls";
import css from "./Dialog.module.css";

interface Props {
  open: boolean;
  onClose: () => void;
  title: string;
  children: ReactNode;
  /** Buttons at the foot, beside Close. */
  actions?: ReactNode;
  /** What would do the same in a terminal. */
  command?: string;
  error?: unknown;
  wide?: boolean;
}

export function Dialog({ open, onClose, title, children, actions, command, error, wide = false }: Props) {
  return (
    <Base.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Base.Portal>
        <Base.Backdrop className={css.backdrop} />
        <Base.Popup className={`${css.popup} ${wide ? css.wide : ""}`}>
          <Base.Title className={css.title}>{title}</Base.Title>
          <div className={css.body}>
            {children}
            {command ? (
              <div className={css.command}>
                <span className={css.caption}>The same as a command</span>
                <Command text={command} />
              </div>
            ) : null}
          </div>
          {error ? <Trouble error={error} /> : null}
          <div className={css.foot}>
            <Button kind="quiet" onClick={onClose}>
              Close
            </Button>
            {actions}
          </div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
