// Command lines of actions, quoted so that they can be pasted into a shell.

const SAFE = /^[\w@%+=:,./-]+$/;
export const quote = (word: string): string => (SAFE.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** Spell a `noetl` command; words that are nothing are left out, numbers and names are quoted where needed. */
export const noetl = (...words: (string | number | null | undefined | false)[]): string =>
  ["noetl", ...words.filter((one) => one !== null && one !== undefined && one !== false && one !== "").map((one) => quote(String(one)))].join(" ");

/** Spell a value as `--set` and `--patch` read it: JSON, or text that is no JSON. */
export function spelled(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  try {
    JSON.parse(value);
    return JSON.stringify(value);
  } catch {
    return value;
  }
}

/** Spell a request of the API for a shell; the token comes from the environment. */
export function curl(method: string, path: string, body?: unknown): string {
  const words = ["curl", method === "GET" ? "" : `-X ${method}`, '-H "Authorization: Bearer $NOETL_TOKEN"'];
  if (body !== undefined) words.push("-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body))}`);
  return [...words, quote(location.origin + path)].filter(Boolean).join(" ");
}
