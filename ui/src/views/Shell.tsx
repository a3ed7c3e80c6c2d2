import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { Suspense, useEffect, useState } from "react";
import { get, type Schemas, send, setCsrf } from "../api/client";
import { useConnection } from "../api/live";
import { mayBe, type Role, useMe } from "../api/session";
import { Kbd, Loading } from "../parts/controls";
import { useKeys } from "../parts/keys";
import { clock, count, plain, settings, shortId } from "../words/format";
import { Palette } from "./Palette";
import css from "./Shell.module.css";
import { Shortcuts } from "./Shortcuts";

interface Place {
  to: string;
  label: string;
  icon: string;
  role?: Role;
  key?: string;
}
const ICONS: Record<string, string> = {
  home: "M2.5 7.5L8 3l5.5 4.5V13h-11zM6.5 13V9.5h3V13",
  playbooks: "M3 2.5h7l3 3v8H3zM5.5 7h5M5.5 10h5",
  executions: "M2.5 4h2M6.5 4h7M2.5 8h2M6.5 8h7M2.5 12h2M6.5 12h7",
  letters: "M2.5 4h11v8h-11zM2.5 4.5L8 8.5l5.5-4",
  workers: "M4 2.5h8v4H4zM4 9.5h8v4H4zM6 4.5h.01M6 11.5h.01",
  schedules: "M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11zM8 5v3l2 1.5",
  outbox: "M8 10V2.5M5 5.5l3-3l3 3M2.5 9v4.5h11V9",
  credentials: "M5.5 7a3 3 0 1 1 0 .01zM8.3 8.2l5 5M11 11l1.5-1.5",
  audit: "M8 2.5l5 2v4c0 3-2.2 4.6-5 5.5c-2.8-.9-5-2.5-5-5.5v-4zM6 8l1.5 1.5L10.2 6.6",
  tokens: "M2.5 5.5h11v5h-11zM5 8h.01M8 8h.01M11 8h.01",
  people: "M6 7.5a2.2 2.2 0 1 0 0-.01zM2.5 13c0-2.4 1.6-3.8 3.5-3.8S9.5 10.6 9.5 13M10.5 7a1.8 1.8 0 1 0 0-.01zM11 9.4c1.6.2 2.6 1.5 2.6 3.4",
  about: "M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11zM8 7.2v3.6M8 5.2v.01",
  settings: "M2.5 5h6M11.5 5h2M10 3.5v3M2.5 11h2M7.5 11h6M6 9.5v3",
};
export const PLACES: Place[] = [
  { to: "/", label: "Home", icon: "home", key: "g h" },
  { to: "/playbooks", label: "Playbooks", icon: "playbooks", key: "g p" },
  { to: "/executions", label: "Executions", icon: "executions", key: "g e" },
  { to: "/letters", label: "Dead letters", icon: "letters", key: "g d" },
  { to: "/workers", label: "Workers", icon: "workers", key: "g w" },
  { to: "/schedules", label: "Schedules", icon: "schedules", key: "g s" },
];
export const MORE: Place[] = [
  { to: "/outbox", label: "Outbox", icon: "outbox" },
  { to: "/credentials", label: "Credentials", icon: "credentials", role: "editor" },
  { to: "/audit", label: "Audit", icon: "audit", role: "admin" },
  { to: "/tokens", label: "Tokens", icon: "tokens", role: "admin" },
  { to: "/people", label: "People", icon: "people", role: "admin" },
];
const LAST: Place[] = [
  { to: "/settings", label: "Settings", icon: "settings" },
  { to: "/about", label: "About", icon: "about" },
];

export function Shell() {
  const { data: me } = useMe();
  const [palette, setPalette] = useState<"all" | "here" | null>(null);
  const [shortcuts, setShortcuts] = useState(false);
  const [narrow, setNarrow] = useState(settings.get("rail") === "narrow");
  const navigate = useNavigate();
  const go = (to: string) => () => void navigate({ to });
  useKeys({
    ...Object.fromEntries(PLACES.map((one) => [one.key as string, go(one.to)])),
    "?": () => setShortcuts(true),
    "\\": () => fold(),
    "/": () => (document.querySelector("[data-filter]") as HTMLInputElement | null)?.focus(),
  });
  useKeys({ "Mod+k": () => setPalette("all") }, { inDialogs: true });
  useEffect(() => {
    const listen = (event: Event) => setPalette((event as CustomEvent).detail === "here" ? "here" : "all");
    addEventListener("noetl-palette", listen);
    return () => removeEventListener("noetl-palette", listen);
  }, []);
  const fold = () => {
    settings.set("rail", narrow ? "wide" : "narrow");
    setNarrow(!narrow);
  };
  return (
    <div className={`${css.shell} ${narrow ? css.narrow : ""}`}>
      <a className={css.skip} href="#content">
        Skip to the content
      </a>
      <nav className={css.rail} aria-label="Main">
        <Link to="/" className={css.brand} aria-label="NoETL, home">
          <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden>
            <rect width="32" height="32" rx="7" className={css.logo} />
            <path d="M8 23V9l8 9V9M16 18l8 5V9" className={css.logoline} />
          </svg>
          <span className={css.label}>NoETL</span>
        </Link>
        <Group places={PLACES} />
        <hr className={css.rule} />
        <Group places={MORE.filter((one) => !one.role || mayBe(me, one.role))} />
        <span className={css.fill} />
        <Group places={LAST} />
        <Theme />
        <Account name={me?.name} kind={me?.kind} role={me?.role || me?.grants[0]?.role} />
      </nav>
      <div className={css.main}>
        <header className={css.top}>
          <button type="button" className={css.foldbutton} aria-label="Fold the navigation" aria-pressed={narrow} title="Fold the navigation (\)" onClick={fold}>
            <Icon name="executions" />
          </button>
          <Crumbs />
          <span className={css.fill} />
          <button type="button" className={css.find} onClick={() => setPalette("all")}>
            <span>Find or do</span> <Kbd>{navigator.platform.startsWith("Mac") ? "⌘K" : "Ctrl K"}</Kbd>
          </button>
          <ConnectionMark />
        </header>
        <main id="content" className={css.content} tabIndex={-1}>
          <Suspense fallback={<Loading />}>
            <Outlet />
          </Suspense>
        </main>
      </div>
      <Palette open={palette !== null} isHere={palette === "here"} onClose={() => setPalette(null)} />
      <Shortcuts open={shortcuts} onClose={() => setShortcuts(false)} />
    </div>
  );
}

const Icon = ({ name }: { name: string }) => (
  <svg viewBox="0 0 16 16" width="16" height="16" className={css.icon} aria-hidden>
    <path d={ICONS[name]} />
  </svg>
);

function Group({ places }: { places: Place[] }) {
  return (
    <>
      {places.map((one) => (
        <Link key={one.to} to={one.to} className={css.place} activeProps={{ className: css.here, "aria-current": "page" }} activeOptions={{ exact: one.to === "/", includeSearch: false }} title={one.key ? `${one.label} (${one.key})` : one.label}>
          <Icon name={one.icon} />
          <span className={css.label}>{one.label}</span>
          {one.to === "/letters" ? <Pending /> : null}
        </Link>
      ))}
    </>
  );
}

function Pending() {
  const { data } = useQuery({
    queryKey: ["letters", "groups", "badge"],
    queryFn: () => get<Schemas["LetterGroups"]>("/api/dlq/groups", { limit: 100 }),
    refetchInterval: 30_000,
  });
  const total = data?.groups.reduce((sum, one) => sum + one.count, 0) ?? 0;
  return total > 0 ? (
    <span className={css.badge} title={`${total} pending`}>
      {count(total)}
    </span>
  ) : null;
}

function Crumbs() {
  const { pathname } = useLocation();
  const parts = pathname.split("/").filter(Boolean);
  const place = [...PLACES, ...MORE, ...LAST, { to: "/edit", label: "Editor" }].find((one) => one.to === `/${parts[0] ?? ""}`);
  const rest = decodeURIComponent(parts.slice(1).join("/"));
  const compared = /^([^/]+)\/compare\/([^/]+)$/.exec(rest);
  useEffect(() => {
    if (!rest) document.title = place ? `${place.label} · NoETL` : "NoETL";
  }, [place, rest]);
  return (
    <nav aria-label="Breadcrumb" className={css.crumbs}>
      {place ? rest ? <Link to={place.to}>{place.label}</Link> : <span aria-current="page">{place.label}</span> : <span>NoETL</span>}
      {rest ? (
        <>
          <span aria-hidden>/</span>
          {compared?.[1] ? (
            <>
              <Link to="/executions/$id" params={{ id: compared[1] }}>{shortId(compared[1])}</Link>
              <span aria-hidden>/</span>
            </>
          ) : null}
          <span aria-current="page" className={css.crumb} title={rest}>
            {compared?.[2] ? `compare with ${compared[2] === "last-good" ? "the last good one" : shortId(compared[2])}` : plain(rest)}
          </span>
        </>
      ) : null}
    </nav>
  );
}

function ConnectionMark() {
  const { state, since } = useConnection();
  const words = { idle: "", live: "live", reconnecting: "reconnecting", stale: `stale since ${clock(since)}` }[state];
  return (
    <span className={`${css.connection} ${css[state]}`} role="status" title={state === "live" ? "Changes arrive as they happen" : words}>
      {words ? <span className={css.dot} aria-hidden /> : null}
      {words}
    </span>
  );
}

export function setTheme(theme: "light" | "dark"): void {
  settings.set("theme", theme);
  document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event("noetl-theme"));
}

function Theme() {
  const [dark, setDark] = useState(document.documentElement.dataset.theme === "dark");
  useEffect(() => {
    const listen = () => setDark(document.documentElement.dataset.theme === "dark");
    addEventListener("noetl-theme", listen);
    return () => removeEventListener("noetl-theme", listen);
  }, []);
  return (
    <button type="button" className={css.place} onClick={() => setTheme(dark ? "light" : "dark")} title="Switch the theme">
      <svg viewBox="0 0 16 16" width="16" height="16" className={css.icon} aria-hidden>
        <path d={dark ? "M8 5a3 3 0 1 1 0 6a3 3 0 1 1 0-6zM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1" : "M12.8 9.8A5.3 5.3 0 0 1 6.2 3.2a5.3 5.3 0 1 0 6.6 6.6z"} />
      </svg>
      <span className={css.label}>{dark ? "Light theme" : "Dark theme"}</span>
    </button>
  );
}

function Account({ name, kind, role }: { name?: string; kind?: string; role?: string }) {
  const leave = async () => {
    await send("DELETE", "/api/session").catch(() => null);
    setCsrf("");
    location.assign("/login");
  };
  return (
    <div className={css.account}>
      <span className={css.avatar} aria-hidden>
        {(name ?? "?").replace("browser of ", "").slice(0, 1).toUpperCase()}
      </span>
      <span className={css.who}>
        <span title={name}>{plain((name ?? "").replace("browser of ", ""))}</span>
        <span className={css.role}>{role}</span>
      </span>
      {kind === "session" ? (
        <button type="button" className={css.leave} onClick={() => void leave()} title="Sign out" aria-label="Sign out">
          <svg viewBox="0 0 16 16" width="16" height="16" className={css.icon} aria-hidden>
            <path d="M6.5 2.5h-4v11h4M6.5 8h7M11 5.5L13.5 8L11 10.5" />
          </svg>
        </button>
      ) : null}
    </div>
  );
}
