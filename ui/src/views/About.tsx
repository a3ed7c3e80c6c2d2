import { useQuery } from "@tanstack/react-query";
import { get, type Schemas } from "../api/client";
import { useMe } from "../api/session";
import { Command, Facts, Loading, Time, Trouble } from "../parts/controls";
import { Sign } from "../parts/Mark";
import { Card, Page } from "../parts/Page";
import { plain, plural } from "../words/format";
import css from "./tables.module.css";

export function About() {
  const { data: me } = useMe();
  const ready = useQuery({ queryKey: ["list", "ready"], queryFn: ({ signal }) => get<Schemas["Health"]>("/ready", {}, signal), refetchInterval: 10_000, retry: false });
  const pools = useQuery({ queryKey: ["list", "pools"], queryFn: ({ signal }) => get<Schemas["PoolRows"]>("/api/pools", {}, signal) });
  const all = pools.data?.pools ?? [];
  const sum = (name: "workers" | "capacity"): number => all.reduce((total, one) => total + one[name], 0);
  return (
    <Page title="About" scrolls>
      {ready.error ? <Trouble error={ready.error} again={() => void ready.refetch()} /> : null}
      <div className={css.cards}>
        <Card title="Server">
          <div className={css.pad}>
            {ready.data ? (
              <Facts
                rows={[
                  ["Version", plain(ready.data.version)],
                  ["Name", plain(ready.data.server)],
                  ["Address", location.origin],
                  ["Status", plain(ready.data.status)],
                  ...Object.entries(ready.data.checks ?? {}).map(([name, state]): [string, React.ReactNode] => [
                    plain(name.charAt(0).toUpperCase() + name.slice(1)),
                    <span key={name} className={css.state}>
                      <Sign mark={state === "ok" ? "check" : "cross"} hue={state === "ok" ? "green" : "red"} size={14} /> {plain(state)}
                    </span>,
                  ]),
                  ["Workers", pools.data ? `${plural(sum("workers"), "worker")}, ${plural(sum("capacity"), "slot")}` : ""],
                ]}
              />
            ) : ready.error ? null : (
              <Loading rows={4} />
            )}
          </div>
        </Card>
        <Card title="You">
          <div className={css.pad}>
            <Facts
              rows={[
                ["Name", plain(me?.name ?? "")],
                ["Role", plain(me?.role ?? "")],
                ["Roles by path", (me?.grants ?? []).map((one) => `${one.role} in ${plain(one.namespace) || "all"}`).join(", ")],
                ["Signed in by", plain(me?.kind ?? "")],
                ["Until", me?.expires_at ? <Time key="e" at={me.expires_at} /> : ""],
              ]}
            />
          </div>
        </Card>
        <Card title="The API">
          <div className={css.choices}>
            <p>
              Everything here uses the public API. <a href="/docs">Its documentation</a> is on this server.
            </p>
            <Command text={`curl -H "Authorization: Bearer $NOETL_TOKEN" ${location.origin}/api/executions`} />
            <Command text={`export NOETL_SERVER_URL=${location.origin}`} />
          </div>
        </Card>
      </div>
    </Page>
  );
}
