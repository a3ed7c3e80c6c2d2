import { Dialog as Base } from "@base-ui/react/dialog";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useRouter } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { get, type Schemas } from "../api/client";
import { mayBe, useMe } from "../api/session";
import { Kbd } from "../parts/controls";
import { Mark } from "../parts/Mark";
import { plain, settings, shortId } from "../words/format";
import css from "./Palette.module.css";
import { MORE, PLACES, setTheme } from "./Shell";

interface Choice {
  id: string;
  group: string;
  label: string;
  hint?: string;
  state?: string;
  keys?: string;
  /** Where it leads, if it is a place: kept among the last choices. */
  href?: string;
  run: () => void;
}

type Kept = Pick<Choice, "group" | "label" | "hint"> & { href: string };
const KEPT = 5;
function lately(): Kept[] {
  try {
    return JSON.parse(settings.get("choices") ?? "[]") as Kept[];
  } catch {
    return [];
  }
}

const ACTIONS = "[data-actions] button:not(:disabled):not([aria-disabled]):not([aria-haspopup])";

/** What the page can do: its buttons and what its menus hold, as long as they are enabled. */
const pageCommands = (): Choice[] =>
  [...document.querySelectorAll<HTMLButtonElement>(ACTIONS)]
    .filter((one) => one.textContent && (one.role === "menuitem" || one.checkVisibility()))
    .map((one, at) => ({ id: `here${at}`, group: "Here", label: one.getAttribute("aria-label") ?? (one.firstElementChild ?? one).textContent ?? "", run: () => one.click() }));

function useDelayed<T>(value: T, ms: number): T {
  const [late, setLate] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLate(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return late;
}

/** Everything by name: places and commands first, then playbooks, executions and causes of dead letters. */
export function Palette({ open, isHere, onClose }: { open: boolean; isHere: boolean; onClose: () => void }) {
  const { data: me } = useMe();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const navigate = useNavigate();
  const { history } = useRouter();
  const list = useRef<HTMLUListElement>(null);
  const asked = useDelayed(text.trim(), 80);
  const has = open && !isHere && asked.length > 0;
  const playbooks = useQuery({ queryKey: ["palette", "playbooks", asked], enabled: has, queryFn: ({ signal }) => get<Schemas["CatalogPage"]>("/api/catalog", { search: asked, limit: 6 }, signal) });
  const executions = useQuery({ queryKey: ["palette", "executions", asked], enabled: has, queryFn: ({ signal }) => get<Schemas["Executions"]>("/api/executions", { search: asked, limit: 6 }, signal) });
  const groups = useQuery({ queryKey: ["palette", "groups"], enabled: open, staleTime: 10_000, queryFn: () => get<Schemas["LetterGroups"]>("/api/dlq/groups", { limit: 50 }) });
  useEffect(() => {
    if (open) {
      setText("");
      setAt(0);
    }
  }, [open]);

  const choices = useMemo(() => {
    const go = (to: string, search: Record<string, unknown> = {}) => () => void navigate({ to, search } as never);
    const follow = (href: string) => () => history.push(href);
    const fits = (label: string) => label.toLowerCase().includes(text.trim().toLowerCase());
    const here = open ? pageCommands().filter((one) => fits(one.label)) : [];
    if (isHere) return here;
    const last: Choice[] = text.trim() ? [] : lately().map((one) => ({ ...one, id: `last${one.href}`, group: "Lately", run: follow(one.href) }));
    const places: Choice[] = [...PLACES, ...MORE.filter((one) => !one.role || mayBe(me, one.role)), { to: "/settings", label: "Settings", key: undefined }, { to: "/about", label: "About", key: undefined }]
      .map((one) => ({ id: one.to, group: "Go to", label: one.label, keys: one.key, href: one.to, run: go(one.to) }))
      .filter((one) => fits(one.label));
    const found: Choice[] = [...last, ...here, ...places];
    const commands: Choice[] = [
      { id: "edit", group: "Do", label: "Write a playbook", run: go("/edit") },
      { id: "dark", group: "Do", label: "Dark theme", run: () => setTheme("dark") },
      { id: "light", group: "Do", label: "Light theme", run: () => setTheme("light") },
      { id: "failed", group: "Do", label: "Show failed executions", run: go("/executions", { q: "status:failed,partial" }) },
      { id: "signal", group: "Do", label: "Show executions that wait for an answer", run: go("/executions", { q: "needs:signal" }) },
    ];
    found.push(...commands.filter((one) => fits(one.label)));
    if (asked) {
      for (const one of playbooks.data?.playbooks ?? []) found.push({ id: `p${one.path}`, group: "Playbooks", label: one.path, hint: `v${one.version}`, href: `/playbooks/${one.path.split("/").map(encodeURIComponent).join("/")}`, run: () => void navigate({ to: "/playbooks/$", params: { _splat: one.path } }) });
      for (const one of executions.data?.executions ?? [])
        found.push({ id: `e${one.execution_id}`, group: "Executions", label: `${one.path ?? ""} ${shortId(one.execution_id)}`, hint: one.execution_id, state: one.status, href: `/executions/${one.execution_id}`, run: () => void navigate({ to: "/executions/$id", params: { id: one.execution_id } }) });
      for (const one of groups.data?.groups ?? []) if (fits(`${one.path} ${one.step_id} ${one.last_error}`)) found.push({ id: `g${one.fingerprint}`, group: "Dead letters", label: one.last_error, hint: `${one.count} × ${one.step_id}`, href: `/letters/${one.fingerprint}`, run: () => void navigate({ to: "/letters/$group", params: { group: one.fingerprint } }) });
    }
    return found;
  }, [text, asked, playbooks.data, executions.data, groups.data, navigate, history, open, isHere, me]);

  const chosen = Math.min(at, choices.length - 1);
  const take = (choice: Choice | undefined) => {
    if (!choice) return;
    const { href, group, label, hint } = choice;
    if (href) settings.set("choices", JSON.stringify([{ href, group, label, hint }, ...lately().filter((one) => one.href !== href)].slice(0, KEPT)));
    onClose();
    choice.run();
  };
  return (
    <Base.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Base.Portal>
        <Base.Backdrop className={css.backdrop} />
        <Base.Popup className={css.popup} aria-label="Find or do">
          <input
            className={css.input}
            placeholder={isHere ? "What this page can do" : "A place, a playbook, an execution's id, a command"}
            aria-label="Find or do"
            role="combobox"
            aria-expanded="true"
            aria-controls="palette-list"
            aria-activedescendant={choices[chosen] ? `choice-${chosen}` : undefined}
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setAt(0);
            }}
            onKeyDown={(event) => {
              if (event.key === "ArrowDown" || event.key === "ArrowUp") {
                event.preventDefault();
                const next = Math.max(0, Math.min(choices.length - 1, chosen + (event.key === "ArrowDown" ? 1 : -1)));
                setAt(next);
                list.current?.querySelector(`#choice-${next}`)?.scrollIntoView({ block: "nearest" });
              } else if (event.key === "Enter") {
                event.preventDefault();
                take(choices.find((one) => one.id === `e${text.trim()}`) ?? choices[chosen]); // a whole id opens at once
              }
            }}
          />
          <ul id="palette-list" className={css.list} role="listbox" aria-label="Choices" ref={list}>
            {choices.map((one, index) => (
              <li
                key={one.id}
                id={`choice-${index}`}
                role="option"
                aria-selected={index === chosen}
                className={css.choice}
                onPointerMove={() => setAt(index)}
                onClick={() => take(one)}
              >
                <span className={css.group}>{choices[index - 1]?.group === one.group ? "" : one.group}</span>
                {one.state ? <Mark state={one.state} /> : null}
                <span className={css.label} title={plain(one.label)}>{plain(one.label)}</span>
                {one.hint ? <span className={css.hint}>{plain(one.hint)}</span> : null}
                {one.keys ? <Kbd>{one.keys}</Kbd> : null}
              </li>
            ))}
            {choices.length === 0 ? <li className={css.none} role="option" aria-selected="false">Nothing has this name.</li> : null}
          </ul>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
