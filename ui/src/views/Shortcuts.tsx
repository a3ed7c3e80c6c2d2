import { Kbd } from "../parts/controls";
import { Dialog } from "../parts/Dialog";
import css from "./Shortcuts.module.css";

export const SHORTCUTS: [string, [string, string][]][] = [
  ["Everywhere", [["Ctrl K", "find or do anything"], ["g h", "Home"], ["g p", "Playbooks"], ["g e", "Executions"], ["g d", "Dead letters"], ["g w", "Workers"], ["g s", "Schedules"], ["/", "focus the filter"], ["\\", "fold the navigation"], ["?", "this list"], ["Esc", "close, then clear the selection"]]],
  ["Tables", [["j k", "down, up"], ["Enter", "open"], ["x", "mark"], ["Shift x", "mark up to here"], ["c", "copy the link of the row"], ["Shift c", "copy it as a command"]]],
  ["Execution", [[", .", "previous, next event"], ["Shift , .", "previous, next event that changes the graph"], ["[ ]", "previous, next event of the selected step"], ["Home End", "first, last event"], ["l", "live"], ["1 … 7", "bottom pane"], ["w", "why"], ["a", "actions"], ["f", "fit the graph"], ["n p", "next, previous failure"], ["e", "first error in the logs"], ["d u", "child of the step, parent"], ["c", "copy the link"], ["Shift c", "copy as a command"]]],
  ["Timeline in focus", [["+ -", "zoom in, out"], ["0", "whole time"], ["← →", "move the zoomed part"]]],
  ["Editor", [["Ctrl S", "register"], ["Ctrl Enter", "run"], ["F8", "next problem"], ["Ctrl .", "fix what is under the cursor"], ["F2", "rename"], ["F12", "definition"], ["Shift Alt F", "format"], ["Ctrl Space", "complete"], ["Esc Tab", "leave the text"]]],
];

export function Shortcuts({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog open={open} onClose={onClose} title="Shortcuts" wide>
      <div className={css.groups}>
        {SHORTCUTS.map(([name, keys]) => (
          <section key={name}>
            <h3>{name}</h3>
            <dl className={css.list}>
              {keys.map(([key, does]) => (
                <div key={key}>
                  <dt>
                    <Kbd>{key}</Kbd>
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
