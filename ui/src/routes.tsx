// Every path of the UI with the schema of its search parameters, in one table. A value that does not parse is dropped.
import { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, Link, redirect } from "@tanstack/react-router";
import { Problem } from "./api/client";
import { fetchMe } from "./api/session";
import { Button, Empty, Trouble } from "./parts/controls";
import { openPalette } from "./parts/keys";
import { Executions } from "./views/Executions";
import { Home } from "./views/Home";
import { Login } from "./views/Login";
import { Shell } from "./views/Shell";
import { type Level, LEVELS } from "./words/logs";

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      retry: (times, error) => times < 2 && (!(error instanceof Problem) || error.status === 0 || error.status >= 500),
    },
  },
});

type Raw = Record<string, unknown>;
const text = (raw: Raw, name: string): string | undefined => (typeof raw[name] === "string" && raw[name] !== "" ? (raw[name] as string).slice(0, 2_000) : undefined);
const whole = (raw: Raw, name: string): number | undefined => {
  const value = Number(raw[name]);
  return raw[name] !== undefined && raw[name] !== "" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
};
const one = <T extends string>(raw: Raw, name: string, of: readonly T[]): T | undefined => of.find((value) => value === raw[name]);

export const PANES = ["timeline", "events", "state", "logs", "children", "result", "items"] as const;
export const TABS = ["why", "input", "outcome", "attempts", "logs", "events", "yaml"] as const;
export const SHOWN = ["open", "failed"] as const;
export interface ExecutionSearch {
  at?: number;
  vs?: number;
  step?: string;
  run?: string;
  item?: number;
  arc?: string;
  pane?: (typeof PANES)[number];
  tab?: (typeof TABS)[number];
  /** Of the items of a loop: only those that failed, and as a list of the slowest. */
  only?: "failed";
  sort?: "slow";
  /** Of the log lines: least level, step, attempt, words. */
  level?: Level;
  of?: string;
  attempt?: number;
  find?: string;
  /** Of the graph: without what is done, or only what failed. */
  show?: (typeof SHOWN)[number];
  /** Of a child: the moment of its parent that the way back keeps. */
  up?: number;
  /** Of the timeline: the part of the time that is shown, gaps that are not folded, and rows whose children are shown. */
  zoom?: string;
  unfold?: string;
  nest?: string;
}
export const PLAYBOOK_TABS = ["overview", "executions", "versions", "schedules", "yaml"] as const;
export interface PlaybookSearch {
  v?: number;
  /** The version that `v` is compared with. */
  since?: number;
  tab?: (typeof PLAYBOOK_TABS)[number];
  step?: string;
}

const NotFound = () => (
  <Empty title="Not found" action={<Button kind="primary" onClick={openPalette}>Find or do</Button>}>
    Nothing has this address. Find a playbook, an execution or a screen by its name, or look at all <Link to="/executions">executions</Link>.
  </Empty>
);
const root = createRootRouteWithContext<{ client: QueryClient }>()({
  notFoundComponent: NotFound,
  errorComponent: ({ error, reset }) => <Trouble error={error} again={reset} />,
});

const inside = createRoute({
  getParentRoute: () => root,
  id: "inside",
  component: Shell,
  beforeLoad: async ({ context, location }) => {
    try {
      await context.client.fetchQuery({ queryKey: ["me"], queryFn: fetchMe, staleTime: 60_000, retry: false });
    } catch (error) {
      if (error instanceof Problem && error.status === 401) throw redirect({ to: "/login", search: { next: location.href } });
      throw error;
    }
  },
  errorComponent: ({ error, reset }) => <Trouble error={error} again={reset} />,
});

const anything = createRoute({ getParentRoute: () => inside, path: "$", component: NotFound });
const login = createRoute({ getParentRoute: () => root, path: "/login", component: Login, validateSearch: (raw: Raw) => ({ next: text(raw, "next") }) });
const home = createRoute({ getParentRoute: () => inside, path: "/", component: Home });
const executions = createRoute({
  getParentRoute: () => inside,
  path: "/executions",
  component: Executions,
  validateSearch: (raw: Raw): { q?: string; view?: string } => ({ q: text(raw, "q"), view: text(raw, "view") }),
});
const execution = createRoute({
  getParentRoute: () => inside,
  path: "/executions/$id",
  component: lazyRouteComponent(() => import("./views/Execution"), "ExecutionPage"),
  validateSearch: (raw: Raw): ExecutionSearch => ({
    at: whole(raw, "at"),
    vs: whole(raw, "vs"),
    step: text(raw, "step"),
    run: text(raw, "run"),
    item: whole(raw, "item"),
    arc: text(raw, "arc"),
    pane: one(raw, "pane", PANES),
    tab: one(raw, "tab", TABS),
    only: one(raw, "only", ["failed"]),
    sort: one(raw, "sort", ["slow"]),
    level: one(raw, "level", LEVELS),
    of: text(raw, "of"),
    attempt: whole(raw, "attempt"),
    find: text(raw, "find"),
    show: one(raw, "show", SHOWN),
    up: whole(raw, "up"),
    zoom: text(raw, "zoom"),
    unfold: text(raw, "unfold"),
    nest: text(raw, "nest"),
  }),
});
const compare = createRoute({ getParentRoute: () => inside, path: "/executions/$id/compare/$other", component: lazyRouteComponent(() => import("./views/Compare"), "ComparePage") });
const playbooks = createRoute({
  getParentRoute: () => inside,
  path: "/playbooks/",
  component: lazyRouteComponent(() => import("./views/Playbooks"), "Playbooks"),
  validateSearch: (raw: Raw): { q?: string; tag?: string } => ({ q: text(raw, "q"), tag: text(raw, "tag") }),
});
const playbook = createRoute({
  getParentRoute: () => inside,
  path: "/playbooks/$",
  component: lazyRouteComponent(() => import("./views/Playbook"), "PlaybookPage"),
  validateSearch: (raw: Raw): PlaybookSearch => ({ v: whole(raw, "v"), since: whole(raw, "since"), tab: one(raw, "tab", PLAYBOOK_TABS), step: text(raw, "step") }),
});
export const LETTER_STATES = ["pending", "replaying", "replayed", "discarded"] as const;
export interface LettersSearch {
  letter?: string;
  status?: (typeof LETTER_STATES)[number];
  path?: string;
  step?: string;
  kind?: string;
  execution?: string;
}
const lettersSearch = (raw: Raw): LettersSearch => ({
  letter: text(raw, "letter"),
  status: one(raw, "status", LETTER_STATES),
  path: text(raw, "path"),
  step: text(raw, "step"),
  kind: text(raw, "kind"),
  execution: text(raw, "execution"),
});
const editSearch = (raw: Raw): { step?: string; line?: number } => ({ step: text(raw, "step"), line: whole(raw, "line") });
const edit = createRoute({ getParentRoute: () => inside, path: "/edit", component: lazyRouteComponent(() => import("./views/Editor"), "EditorPage"), validateSearch: editSearch });
const editOne = createRoute({ getParentRoute: () => inside, path: "/edit/$", component: lazyRouteComponent(() => import("./views/Editor"), "EditorPage"), validateSearch: editSearch });
const letters = createRoute({ getParentRoute: () => inside, path: "/letters", component: lazyRouteComponent(() => import("./views/Letters"), "Letters"), validateSearch: lettersSearch });
const letterGroup = createRoute({ getParentRoute: () => inside, path: "/letters/$group", component: lazyRouteComponent(() => import("./views/Letters"), "Letters"), validateSearch: lettersSearch });

const TABLES = ["workers", "schedules", "outbox", "credentials", "audit", "tokens", "people", "about", "settings"] as const;
type TableName = (typeof TABLES)[number];
/** `id` is the row whose panel is open, `tab` one of several lists on a screen. */
export interface TableSearch {
  q?: string;
  id?: string;
  tab?: string;
}
const table = <N extends TableName>(name: N, component: keyof typeof import("./views/tables")) =>
  createRoute({
    getParentRoute: () => inside,
    path: `/${name}` as const,
    component: lazyRouteComponent(() => import("./views/tables"), component),
    validateSearch: (raw: Raw): TableSearch => ({ q: text(raw, "q"), id: text(raw, "id"), tab: text(raw, "tab") }),
  });

const tree = root.addChildren([
  login,
  inside.addChildren([
    home,
    executions,
    execution,
    compare,
    playbooks,
    playbook,
    edit,
    editOne,
    letters,
    letterGroup,
    table("workers", "Workers"),
    table("schedules", "Schedules"),
    table("outbox", "Outbox"),
    table("credentials", "Credentials"),
    table("audit", "Audit"),
    table("tokens", "Tokens"),
    table("people", "People"),
    table("about", "About"),
    table("settings", "Settings"),
    anything,
  ]),
]);

/** Search parameters are plain text: an id is no number. */
export const router = createRouter({
  routeTree: tree,
  context: { client },
  parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
  stringifySearch: (search) => {
    const pairs = Object.entries(search).filter(([, value]) => value !== undefined && value !== null && value !== "");
    const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
    return text ? `?${text}` : "";
  },
  defaultPreload: false,
  defaultPendingMs: 150,
  scrollRestoration: false,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
