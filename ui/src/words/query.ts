// The language of the query bar: `status:failed,partial path:orders/* since:24h needs:signal "free text"`.
import { now } from "./format";
import { EXECUTION_STATES } from "./states";

export const KEYS = ["status", "path", "tag", "parent", "since", "until", "needs", "id"] as const;

export interface Filter {
  /** Parameters of GET /api/executions. */
  query: Record<string, string | number | boolean | string[]>;
  problems: string[];
  needsSignal: boolean;
}

const TOKEN = /(\w+):("[^"]*"|\S+)|"([^"]*)"|(\S+)/g;
const UNITS: Record<string, number> = { m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

function timeOf(text: string): number | null {
  const found = /^(\d+)(m|min|h|d|w)$/.exec(text);
  if (found) return Math.round(now() - Number(found[1]) * (UNITS[found[2] as string] as number));
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}

export function parseQuery(text: string): Filter {
  const query: Filter["query"] = {};
  const problems: string[] = [];
  const words: string[] = [];
  let needsSignal = false;
  for (const found of text.matchAll(TOKEN)) {
    const [, key, raw, quoted, word] = found;
    const value = raw?.replace(/^"|"$/g, "") ?? "";
    if (!key) words.push(quoted ?? word ?? "");
    else if (key === "status") {
      const asked = value.split(",").filter(Boolean);
      const wrong = asked.filter((one) => !EXECUTION_STATES.includes(one));
      if (wrong.length) problems.push(`No status ${wrong.join(", ")}: use ${EXECUTION_STATES.join(", ")}.`);
      query.status = asked.filter((one) => EXECUTION_STATES.includes(one));
    } else if (key === "since" || key === "until") {
      const at = timeOf(value);
      if (at === null) problems.push(`${key}:${value} is no time: use 24h, 7d or 2026-10-12.`);
      else query[key] = at;
    } else if (key === "needs") {
      if (value === "signal") needsSignal = true;
      else problems.push("Use needs:signal.");
    } else if (key === "id") words.push(value);
    else if ((KEYS as readonly string[]).includes(key)) query[key] = value;
    else words.push(found[0]);
  }
  if (words.length) query.search = words.join(" ");
  return { query, problems, needsSignal };
}

/** The filter of playbooks, `tag:nightly label:team=data words`: parameters of GET /api/catalog. */
export function parseCatalogQuery(text: string): { search?: string; tag?: string; label?: string } {
  const query: { search?: string; tag?: string; label?: string } = {};
  const words: string[] = [];
  for (const [whole, key, raw, quoted] of text.matchAll(TOKEN)) {
    if (key === "tag" || key === "label") query[key] = raw?.replace(/^"|"$/g, "");
    else words.push(quoted ?? whole);
  }
  if (words.length) query.search = words.join(" ");
  return query;
}
