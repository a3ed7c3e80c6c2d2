// Times, durations, sizes and counts in the words of the UI.

export const settings = {
  get all(): Record<string, string> {
    try {
      return JSON.parse(localStorage.getItem("noetl.settings") ?? "{}") as Record<string, string>;
    } catch {
      return {};
    }
  },
  get(name: string): string | undefined {
    return this.all[name];
  },
  set(name: string, value: string): void {
    try {
      localStorage.setItem("noetl.settings", JSON.stringify({ ...this.all, [name]: value }));
    } catch {
      // without storage, the setting lives as long as the page
    }
  },
};

let offset = 0;
/** Take the server's clock from an answer; small differences are the network's. */
export function setServerTime(date: string | null): void {
  if (!date) return;
  const found = Date.parse(date) + 500 - Date.now();
  offset = Math.abs(found) > 2_000 ? found : 0;
}
export const now = (): number => Date.now() + offset;

const two = (value: number): string => String(value).padStart(2, "0");
const isUtc = (): boolean => settings.get("zone") === "utc";
export const zoneName = (): string => (isUtc() ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone);

/** The zone in a few letters, such as CET or GMT+5:30. */
export const shortZone = (): string =>
  isUtc() ? "UTC" : (new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(now()).find((one) => one.type === "timeZoneName")?.value ?? zoneName());

/** A duration; of a place on a scale, `step` is how much the scale shows, so that its ticks differ. */
export function duration(ms: number | null | undefined, step = Infinity): string {
  if (ms === null || ms === undefined) return "";
  if (step < 10_000 && ms >= 10_000 && ms < 60_000) return `${(ms / 1_000).toFixed(step < 100 ? 3 : step < 1_000 ? 2 : 1)} s`;
  if (step < 1_000 && ms >= 1_000 && ms < 60_000) return `${(ms / 1_000).toFixed(step < 100 ? 3 : 2)} s`;
  if (ms < 1_000) return `${Math.round(Math.max(0, ms))} ms`;
  const s = ms / 1_000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  const whole = Math.round(s);
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3_600)} h ${two(Math.floor((whole % 3_600) / 60))} min`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3_600)} h`;
}

function rough(ms: number): string {
  const s = Math.round(ms / 1_000);
  if (s < 60) return `${s} s`;
  if (s < 3_600) return `${Math.round(s / 60)} min`;
  if (s < 2 * 86_400) return `${Math.round(s / 3_600)} h`;
  return `${Math.round(s / 86_400)} days`;
}

export function ago(at: number, then = now()): string {
  const ms = then - at;
  if (Math.abs(ms) < 2_000) return "now";
  return ms < 0 ? `in ${rough(-ms)}` : `${rough(ms)} ago`;
}

export function clock(at: number, withMs = false): string {
  const date = new Date(at);
  const parts = isUtc()
    ? [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()]
    : [date.getHours(), date.getMinutes(), date.getSeconds()];
  const text = parts.map(two).join(":");
  return withMs ? `${text}.${String(date.getMilliseconds()).padStart(3, "0")}` : text;
}

export function exact(at: number): string {
  const date = new Date(at);
  const local = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const utc = date.toISOString().replace("T", " ").replace("Z", "");
  if (zone === "UTC") return `${utc} UTC`;
  return `${local} ${zone} · ${utc} UTC`;
}

export const count = (value: number): string => value.toLocaleString("en");
export const plural = (value: number, one: string, many = `${one}s`): string => `${count(value)} ${value === 1 ? one : many}`;

export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export const shortId = (id: string): string => (id.length > 8 ? `…${id.slice(-4)}` : id);

/** Cut a long path in its middle, since its ends tell most. */
export const middle = (text: string, most = 44): string =>
  text.length <= most ? text : `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(-Math.floor(most / 2))}`;

// Bidirectional and control characters would let a name look like another one.
const ODD = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
export const plain = (text: string): string => text.replace(ODD, (one) => `\\u${(one.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`);

export function errorText(error: unknown): string {
  if (error === null || error === undefined) return "";
  if (typeof error === "string") return plain(error);
  if (typeof error === "object") {
    const found = error as Record<string, unknown>;
    const text = found.message ?? found.detail ?? found.kind;
    if (typeof text === "string") return plain(text);
    return plain(JSON.stringify(error));
  }
  return String(error);
}
