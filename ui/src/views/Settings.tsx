import { useState } from "react";
import { Field, Kbd } from "../parts/controls";
import { Card, Lines, Page } from "../parts/Page";
import { exact, now, settings } from "../words/format";
import { setTheme } from "./Shell";
import { SHORTCUTS } from "./Shortcuts";
import css from "./tables.module.css";

/** Kept in this browser alone. */
export function Settings() {
  const [, setChanged] = useState(0);
  const set = (name: string, value: string) => {
    settings.set(name, value);
    if (name === "density") document.documentElement.dataset.density = value;
    setChanged((old) => old + 1);
  };
  const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
  return (
    <Page title="Settings" note="Kept in this browser." scrolls>
      <div className={css.cards}>
        <Card title="Look">
          <div className={css.choices}>
            <Field label="Theme">
              <select value={theme} onChange={(event) => { setTheme(event.target.value as "light" | "dark"); setChanged((old) => old + 1); }}>
                <option value="light">light</option>
                <option value="dark">dark</option>
              </select>
            </Field>
            <Field label="Rows of tables">
              <select value={settings.get("density") ?? "normal"} onChange={(event) => set("density", event.target.value)}>
                <option value="normal">normal, 32 px</option>
                <option value="compact">compact, 26 px</option>
              </select>
            </Field>
            <Field label="Time zone" hint={`Now: ${exact(now())}`}>
              <select value={settings.get("zone") ?? "local"} onChange={(event) => set("zone", event.target.value)}>
                <option value="local">of this computer: {Intl.DateTimeFormat().resolvedOptions().timeZone}</option>
                <option value="utc">UTC</option>
              </select>
            </Field>
            <Field label="Keys of one letter" hint="Off: only keys with Ctrl or ⌘ work.">
              <select value={settings.get("letters") ?? "on"} onChange={(event) => set("letters", event.target.value)}>
                <option value="on">on</option>
                <option value="off">off</option>
              </select>
            </Field>
          </div>
        </Card>
        {SHORTCUTS.map(([name, keys]) => (
          <Card key={name} title={`Shortcuts: ${name.toLowerCase()}`}>
            <Lines wraps label={name} heads={["key", "does"]} rows={keys.map(([key, does]) => ({ key, cells: [<Kbd key="k">{key}</Kbd>, does] }))} />
          </Card>
        ))}
      </div>
    </Page>
  );
}
